/* Loops that do one thing as fast as a core can: multiply-adds, STREAM's triad, reading, a chase of pointers, a chain of
   additions. Each is there for several widths; kernels.py chooses by what the processor has. Vector types are GCC's and
   clang's own, so that one text serves every architecture; only what these types cannot say is in intrinsics. */

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define X86 1
#else
#define X86 0
#endif

#define ON(isa) __attribute__((noinline, target(isa)))
#define ANY __attribute__((noinline))

typedef float f128 __attribute__((vector_size(16)));
typedef float f256 __attribute__((vector_size(32)));
typedef float f512 __attribute__((vector_size(64)));
typedef double d128 __attribute__((vector_size(16), aligned(16)));
typedef double d256 __attribute__((vector_size(32), aligned(32)));
typedef double d512 __attribute__((vector_size(64), aligned(64)));

/* Twelve chains of a * b + c cover two units of four cycles' latency and fit the sixteen registers of AVX2. The values
   converge to 1: they become neither infinite nor denormal. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

#define FMA(NAME, ISA, VECTOR)                                                                                         \
    ISA float NAME(int64_t rounds, float scale, float add) {                                                           \
        VECTOR zero = {0}, b = zero + scale, c = zero + add;                                                           \
        VECTOR a0 = b, a1 = b + 1, a2 = b + 2, a3 = b + 3, a4 = b + 4, a5 = b + 5, a6 = b + 6, a7 = b + 7, a8 = b + 8,  \
               a9 = b + 9, a10 = b + 10, a11 = b + 11;                                                                 \
        for (int64_t n = 0; n < rounds; n++) {                                                                         \
            a0 = a0 * b + c, a1 = a1 * b + c, a2 = a2 * b + c, a3 = a3 * b + c, a4 = a4 * b + c, a5 = a5 * b + c;       \
            a6 = a6 * b + c, a7 = a7 * b + c, a8 = a8 * b + c, a9 = a9 * b + c, a10 = a10 * b + c, a11 = a11 * b + c;   \
        }                                                                                                              \
        VECTOR sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;                                      \
        return sum[0] + sum[1];                                                                                        \
    }

/* a[i] = b[i] + s * c[i] in doubles, as STREAM defines it; `count` is a multiple of 8 vectors. */
#define TRIAD(NAME, ISA, VECTOR, STORE)                                                                                \
    ISA void NAME(double *a, const double *b, const double *c, int64_t count, int64_t rounds, double scale) {          \
        const size_t lanes = sizeof(VECTOR) / sizeof(double);                                                          \
        VECTOR zero = {0}, s = zero + scale;                                                                           \
        for (int64_t n = 0; n < rounds; n++) {                                                                         \
            for (int64_t i = 0; i < count; i += 4 * lanes) {                                                           \
                for (size_t k = 0; k < 4; k++)                                                                         \
                    STORE(a + i + k * lanes,                                                                           \
                          *(const VECTOR *)(b + i + k * lanes) + s * *(const VECTOR *)(c + i + k * lanes), VECTOR);     \
            }                                                                                                          \
            __asm__ volatile("" ::: "memory");                                                                         \
        }                                                                                                              \
    }

#define KEEP(to, what, VECTOR) (*(VECTOR *)(to) = (what))

#define READ(NAME, ISA, VECTOR)                                                                                        \
    ISA double NAME(const double *a, int64_t count, int64_t rounds) {                                                  \
        const size_t lanes = sizeof(VECTOR) / sizeof(double);                                                          \
        VECTOR s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};                         \
        for (int64_t n = 0; n < rounds; n++) {                                                                         \
            for (int64_t i = 0; i < count; i += 8 * lanes) {                                                           \
                const VECTOR *at = (const VECTOR *)(a + i);                                                            \
                s0 += at[0], s1 += at[1], s2 += at[2], s3 += at[3], s4 += at[4], s5 += at[5], s6 += at[6], s7 += at[7]; \
            }                                                                                                          \
            __asm__ volatile("" ::: "memory");                                                                         \
        }                                                                                                              \
        VECTOR sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;                                                            \
        return sum[0] + sum[1];                                                                                        \
    }

FMA(fma_128, ANY, f128)
TRIAD(triad_128, ANY, d128, KEEP)
READ(read_128, ANY, d128)

#if X86
FMA(fma_256, ON("avx2,fma"), f256)
FMA(fma_512, ON("avx512f,prefer-vector-width=512"), f512)
TRIAD(triad_256, ON("avx2,fma"), d256, KEEP)
TRIAD(triad_512, ON("avx512f"), d512, KEEP)
READ(read_256, ON("avx2,fma"), d256)
READ(read_512, ON("avx512f"), d512)

#define PAST_CACHES_128(to, what, VECTOR) _mm_stream_pd((to), (__m128d)(what))
#define PAST_CACHES_256(to, what, VECTOR) _mm256_stream_pd((to), (__m256d)(what))
#define PAST_CACHES_512(to, what, VECTOR) _mm512_stream_pd((to), (__m512d)(what))
TRIAD(triad_nt_128, ANY, d128, PAST_CACHES_128)
TRIAD(triad_nt_256, ON("avx2,fma"), d256, PAST_CACHES_256)
TRIAD(triad_nt_512, ON("avx512f"), d512, PAST_CACHES_512)

/* Products of pairs of BF16, and of fours of bytes, added to 32-bit sums: 32 and 64 multiply-adds an instruction. */
#define DOT(NAME, ISA, VECTOR, ZERO, INSTRUCTION, OPERAND)                                                             \
    ON(ISA) float NAME(int64_t rounds, float scale, float add) {                                                       \
        VECTOR a0 = ZERO, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, a8 = a0, a9 = a0, a10 = a0,     \
               a11 = a0;                                                                                               \
        OPERAND b, c;                                                                                                  \
        __builtin_memset(&b, scale > 0, sizeof b), __builtin_memset(&c, add > 0, sizeof c);                            \
        for (int64_t n = 0; n < rounds; n++) {                                                                         \
            a0 = INSTRUCTION(a0, b, c), a1 = INSTRUCTION(a1, b, c), a2 = INSTRUCTION(a2, b, c);                        \
            a3 = INSTRUCTION(a3, b, c), a4 = INSTRUCTION(a4, b, c), a5 = INSTRUCTION(a5, b, c);                        \
            a6 = INSTRUCTION(a6, b, c), a7 = INSTRUCTION(a7, b, c), a8 = INSTRUCTION(a8, b, c);                        \
            a9 = INSTRUCTION(a9, b, c), a10 = INSTRUCTION(a10, b, c), a11 = INSTRUCTION(a11, b, c);                    \
            __asm__ volatile("" : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5));                         \
            __asm__ volatile("" : "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11));                       \
        }                                                                                                              \
        float out[16] = {0}, sum = 0;                                                                                  \
        __builtin_memcpy(out, &a0, sizeof a0), sum += out[0];                                                          \
        __builtin_memcpy(out, &a11, sizeof a11), sum += out[0];                                                        \
        return sum;                                                                                                    \
    }

#if defined(__clang__) || __GNUC__ >= 11
DOT(bf16_512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(), _mm512_dpbf16_ps, __m512bh)
DOT(int8_512, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), _mm512_dpbusd_epi32, __m512i)
DOT(int8_256, "avx2,avxvnni", __m256i, _mm256_setzero_si256(), _mm256_dpbusd_avx_epi32, __m256i)
#endif
#endif

/* Where each line says which one is next: every load waits for the one before. */
ANY void *chase(void **line, int64_t steps) {
    for (int64_t n = 0; n < steps; n++)
        line = (void **)*line;
    return (void *)line;
}

/* One addition a cycle, each of what the one before left: the core's clock. */
ANY uint64_t additions(int64_t rounds, uint64_t add) {
    uint64_t x = add;
#define ONE(k) x += add; __asm__ volatile("" : "+r"(x));
    for (int64_t n = 0; n < rounds; n++) {
        CHAINS(ONE)
    }
    return x;
}
