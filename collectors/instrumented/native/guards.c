/* Pages that hold code of which there are copies, and what may change them. A copy must not be executed once its
   original has become other code:

   - what is unmapped stays, for good: the unmapping is led to a dummy mapping, so no other code comes to its address
   - pages that may be written are protected from it; the fault of the first write makes them writable again, and every
     block of them is compared with its original before it is executed next (rewritten.c)
   - so is every block within reach of mprotect, mremap and mappings at fixed addresses, which are seen at the system
     calls of instrumented threads */

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
extern int open(const char *path, int flags);
extern gssize read(int file, gpointer to, gsize bytes);
extern int close(int file);

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

/* --- the process's mappings */

typedef struct {
  int file;
  guint32 at, filled;
  char buffer[4096];
} Reader;

static int next_char(Reader *reader) {
  if (reader->at == reader->filled) {
    gssize got = read(reader->file, reader->buffer, sizeof(reader->buffer));
    if (got <= 0) return -1;
    reader->at = 0;
    reader->filled = got;
  }
  return (guint8) reader->buffer[reader->at++];
}

/* Up to the character after it, which is given back. */
static int read_hex(Reader *reader, guint64 *value) {
  int c;
  *value = 0;
  while ((c = next_char(reader)) >= 0) {
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    *value = *value << 4 | digit;
  }
  return c;
}

/* A line of /proc/self/maps; FALSE at the end. */
static gboolean read_mapping(Reader *reader, Mapping *mapping) {
  guint64 ignored;
  char protection[5];
  int i, c;
  read_hex(reader, &mapping->start);
  if (read_hex(reader, &mapping->end) < 0) return FALSE;
  for (i = 0; i < 5; i++) protection[i] = next_char(reader);
  read_hex(reader, &ignored); /* offset */
  read_hex(reader, &ignored); /* device */
  read_hex(reader, &ignored);
  mapping->is_file = 0;
  while ((c = next_char(reader)) >= '0' && c <= '9') mapping->is_file |= c != '0'; /* inode */
  while (c >= 0 && c != '\n') c = next_char(reader);
  mapping->writable = protection[1] == 'w';
  mapping->shared = protection[3] == 's';
  return TRUE;
}

/* The one that an address lies in: the last that was asked for, or a new look. The lock is held. */
static const Mapping *mapping_of(guint64 address) {
  Reader reader;
  Mapping *mapping = &control.mapping;
  if (address >= mapping->start && address < mapping->end) return mapping;
  reader.at = reader.filled = 0;
  reader.file = open("/proc/self/maps", 0);
  if (reader.file < 0) return NULL;
  do {
    if (!read_mapping(&reader, mapping)) {
      mapping->start = mapping->end = 0;
      break;
    }
  } while (address >= mapping->end);
  close(reader.file);
  return address >= mapping->start && address < mapping->end ? mapping : NULL;
}

/* Finds out what may happen to a page of code, and takes away that it can be written unseen. The lock is held. */
static int guard_page(guint64 page) {
  guint64 i = take_page(page);
  const Mapping *mapping;
  if (i == CODE_PAGES) {
    control.unguarded++;
    return PAGE_COMPARED;
  }
  if (page_states[i] != PAGE_UNKNOWN && page_states[i] != PAGE_WRITTEN) return page_states[i];
  mapping = mapping_of(page << PAGE_SHIFT);
  if (mapping == NULL || mapping->shared || (mapping->writable && (control.unprotecting || page_faults[i] > MOST_FAULTS)))
    page_states[i] = PAGE_COMPARED;
  else if (!mapping->writable)
    page_states[i] = mapping->is_file ? PAGE_OF_FILE : PAGE_READ_ONLY;
  else if (mprotect((gpointer) (page << PAGE_SHIFT), PAGE_BYTES, PROT_READ_EXEC) == 0)
    page_states[i] = PAGE_PROTECTED;
  else
    page_states[i] = PAGE_COMPARED;
  if (page_states[i] == PAGE_PROTECTED) control.mapping.start = control.mapping.end = 0;
  return page_states[i];
}
