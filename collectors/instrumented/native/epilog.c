/* frida-gum up to 17.26 corrupts AVX-512 registers: the epilog of its helpers restores bits 256 to 511 of zmm0 to zmm15
   first and then bits 128 to 255 with vinserti128, a VEX instruction, which clears everything above. The sixteen of them
   (151 bytes) are rewritten as EVEX vinserti32x4 on zmm registers (144 bytes and a nop of 7), which keep it. */

#define EPILOG_BYTES 151
#define REGISTERS 16
#define HELPERS_BYTES 65536 /* the helpers lie at the beginning of an execution context's first slab of code */

static const guint8 EPILOG_BEGIN[] = {0xc4, 0xe3, 0x7d, 0x38, 0x04, 0x24, 0x01,        /* vinserti128 ymm0,ymm0,[rsp],1 */
                                      0xc4, 0xe3, 0x75, 0x38, 0x4c, 0x24, 0x10, 0x01}; /* ... ymm1,ymm1,[rsp+16],1 */
static const guint8 NOP7[] = {0x0f, 0x1f, 0x80, 0, 0, 0, 0};

/* vinserti32x4 zmm{i}, zmm{i}, [rsp+16*i], 1 */
static void put_insert(guint8 *to, int i) {
  to[0] = 0x62;
  to[1] = i < 8 ? 0xf3 : 0x73;
  to[2] = ((~i & 15) << 3) | 5;
  to[3] = 0x48;
  to[4] = 0x38;
  to[5] = 0x44 | ((i & 7) << 3);
  to[6] = 0x24;
  to[7] = i; /* in units of 16 bytes */
  to[8] = 1;
}

/* How many epilogs were mended. */
static int mend_epilogs(guint8 *code) {
  guint8 *end = code + HELPERS_BYTES - EPILOG_BYTES;
  int mended = 0, i;
  for (; code <= end; code++) {
    if (memcmp(code, EPILOG_BEGIN, sizeof(EPILOG_BEGIN)) != 0) continue;
    for (i = 0; i < REGISTERS; i++) put_insert(code + 9 * i, i);
    memcpy(code + 9 * REGISTERS, NOP7, sizeof(NOP7));
    mended++;
  }
  return mended;
}
