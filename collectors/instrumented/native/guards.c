/* Pages that hold code of which there are copies, and what may change them. A copy must not be executed once its
   original has become other code:

   - what is unmapped stays, for good: the unmapping is led to a dummy mapping, so no other code comes to its address
   - pages that may be written are protected from it; the fault of the first write makes them writable again, and every
     block of them is compared with its original before it is executed next (rewritten.c)
   - the kernel gets no fault where it may not write, and its system call fails: a protected page is made writable again
     before any system call that is handed an address in it
   - every block is compared, too, within reach of mprotect, mremap and mappings at fixed addresses, which are seen at the system
     calls of instrumented threads (changes.c)
   - what may be written through another mapping of the same memory is compared each time
   - what other threads' system calls do, and what is written into libraries' files, is found out afterwards */

#define PAGE_SHIFT 12
#define PAGE_BYTES 4096
#define CODE_PAGES 65536 /* room in the table */
#define PROT_NONE 0
#define PROT_READ_EXEC 5
#define PROT_WRITE 2

/* What is known of a page. */
enum PageState { PAGE_UNKNOWN, PAGE_OF_FILE, PAGE_READ_ONLY, PAGE_PROTECTED, PAGE_WRITTEN, PAGE_COMPARED };

extern guint64 code_pages[CODE_PAGES]; /* an open-addressing set of page numbers */
extern guint8 page_states[CODE_PAGES];
extern guint8 page_faults[CODE_PAGES];

extern int mprotect(gpointer address, gsize length, int protection);

static guint64 page_hash(guint64 page) { return (page * 0x9E3779B97F4A7C15UL) >> 48; }

/* Its place in the table; CODE_PAGES: it has none. */
static guint64 find_page(guint64 page) {
  guint64 i = page_hash(page), tries;
  for (tries = 0; tries < CODE_PAGES && code_pages[i] != 0; tries++, i = (i + 1) % CODE_PAGES)
    if (code_pages[i] == page) return i;
  return CODE_PAGES;
}

/* The same of a page that may be new. The lock is held. */
static guint64 take_page(guint64 page) {
  guint64 i = page_hash(page), tries;
  for (tries = 0; tries < CODE_PAGES; tries++, i = (i + 1) % CODE_PAGES) {
    if (code_pages[i] == page) return i;
    if (code_pages[i] == 0) {
      page_states[i] = PAGE_UNKNOWN;
      code_pages[i] = page;
      return i;
    }
  }
  return CODE_PAGES;
}

static gboolean holds_code(guint64 first, guint64 end) {
  guint64 i;
  if (end - first <= CODE_PAGES) {
    for (i = first; i < end; i++)
      if (find_page(i) != CODE_PAGES) return TRUE;
  } else {
    for (i = 0; i < CODE_PAGES; i++)
      if (code_pages[i] >= first && code_pages[i] < end) return TRUE;
  }
  return FALSE;
}

/* What may happen to a page of code; where it may be written, that is taken away. The lock is held. */
static int state_of_mapping(guint64 i) {
  guint64 address = code_pages[i] << PAGE_SHIFT;
  const Mapping *mapping = mapping_of(address);
  if (mapping == NULL || mapping->shared) return PAGE_COMPARED;
  if (!mapping->writable && mapping->is_file) return PAGE_OF_FILE;
  if (control.unguarding) return PAGE_COMPARED;
  if (!mapping->writable) return PAGE_READ_ONLY;
  if (page_faults[i] > MOST_FAULTS) return PAGE_COMPARED;
  if (mprotect((gpointer) address, PAGE_BYTES, PROT_READ_EXEC) != 0) return PAGE_COMPARED;
  forget_mapping();
  control.protecting = TRUE;
  return PAGE_PROTECTED;
}

/* The same for a page that may be known. The lock is held. */
static int guard_page(guint64 page) {
  guint64 i = take_page(page);
  if (i == CODE_PAGES) {
    control.unguarded++;
    return PAGE_COMPARED;
  }
  if (page_states[i] != PAGE_UNKNOWN && page_states[i] != PAGE_WRITTEN) return page_states[i];
  page_states[i] = state_of_mapping(i);
  if (page_states[i] == PAGE_READ_ONLY) control.read_only_pages++;
  return page_states[i];
}

/* Whether blocks there are always compared. The lock is held. */
static gboolean guard_block(guint64 start, guint64 end) {
  gboolean compared = FALSE;
  guint64 page;
  for (page = start >> PAGE_SHIFT; page <= (end - 1) >> PAGE_SHIFT; page++)
    if (guard_page(page) == PAGE_COMPARED) compared = TRUE;
  return compared;
}

/* Lets a protected page be written. The lock is held. */
static void unprotect_page(guint64 i) {
  mprotect((gpointer) (code_pages[i] << PAGE_SHIFT), PAGE_BYTES, PROT_READ_EXEC | PROT_WRITE);
  forget_mapping();
}

/* Instrumentation begins (anew), and there are no copies of code: what was done to pages meanwhile, nobody saw. Those
   that are protected are so again. */
void begin_epoch(void) {
  guint64 i;
  gum_spinlock_acquire(control.lock);
  control.epoch++;
  forget_mapping();
  for (i = 0; i < CODE_PAGES; i++)
    if (page_states[i] != PAGE_PROTECTED ||
        mprotect((gpointer) (code_pages[i] << PAGE_SHIFT), PAGE_BYTES, PROT_READ_EXEC) != 0)
      page_states[i] = PAGE_UNKNOWN;
  gum_spinlock_release(control.lock);
}
