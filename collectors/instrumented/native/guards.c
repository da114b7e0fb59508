/* Code that is unmapped must not come back as other code at the same address while copies of it are kept: the copies
   would be taken for it. So an unmapping of code that was instrumented is led to a dummy mapping instead; the pages of
   the code stay, for good. */

#define PAGE_SHIFT 12
#define CODE_PAGES 65536 /* room in the table */
#define PROT_NONE 0

extern guint64 code_pages[CODE_PAGES]; /* an open-addressing set of page numbers */
extern char munmap_address;            /* of the C library's function */

static guint64 page_hash(guint64 page) { return (page * 0x9E3779B97F4A7C15UL) >> 48; }

static void remember_page(guint64 page) {
  guint64 i = page_hash(page), tries;
  for (tries = 0; tries < CODE_PAGES; tries++, i = (i + 1) % CODE_PAGES) {
    if (code_pages[i] == page) return;
    if (code_pages[i] == 0) {
      code_pages[i] = page;
      return;
    }
  }
}

static gboolean is_code_page(guint64 page) {
  guint64 i = page_hash(page), tries;
  for (tries = 0; tries < CODE_PAGES && code_pages[i] != 0; tries++, i = (i + 1) % CODE_PAGES)
    if (code_pages[i] == page) return TRUE;
  return FALSE;
}

static gboolean holds_code(guint64 first, guint64 end) {
  guint64 i;
  if (end - first <= CODE_PAGES) {
    for (i = first; i < end; i++)
      if (is_code_page(i)) return TRUE;
  } else {
    for (i = 0; i < CODE_PAGES; i++)
      if (code_pages[i] >= first && code_pages[i] < end) return TRUE;
  }
  return FALSE;
}

static void remember_code(guint64 start, guint64 end) {
  remember_page(start >> PAGE_SHIFT);
  remember_page((end - 1) >> PAGE_SHIFT);
}

/* On entry to munmap(address, length): rdi and rsi. */
static void on_munmap(GumCpuContext *cpu, gpointer unused) {
  guint64 page = 1UL << PAGE_SHIFT;
  if (!holds_code(cpu->rdi >> PAGE_SHIFT, (cpu->rdi + cpu->rsi + page - 1) >> PAGE_SHIFT)) return;
  cpu->rdi = (guint64) mmap(NULL, cpu->rsi, PROT_NONE, MAP_PRIVATE_ANONYMOUS, -1, 0);
  control.kept_mappings++;
}
