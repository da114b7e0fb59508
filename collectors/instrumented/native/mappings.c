/* The process's mappings, as /proc/self/maps has them. */

#define MOST_PATH 4096

extern int open(const char *path, int flags);
extern gssize read(int file, gpointer to, gsize bytes);
extern int close(int file);

typedef struct {
  int file;
  guint32 at, filled;
  char buffer[4096];
  char path[MOST_PATH]; /* of the mapping that was read last, its end cut off where it is longer */
  guint64 path_bytes;
} Reader;

extern Reader maps_reader; /* not on the stack: a handler of faults may have a small one. Whoever uses it has the lock */

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

static void read_path(Reader *reader, int c) {
  while (c == ' ') c = next_char(reader);
  for (reader->path_bytes = 0; c >= 0 && c != '\n'; c = next_char(reader))
    if (reader->path_bytes < MOST_PATH) reader->path[reader->path_bytes++] = c;
}

static gboolean path_begins(const Reader *reader, const char *text) {
  gsize bytes = strlen(text);
  return reader->path_bytes >= bytes && memcmp(reader->path, text, bytes) == 0;
}

/* A file that has no name, or lies in memory, is there to be written through another mapping of it. */
static gboolean is_written_elsewhere(const Reader *reader) {
  static const char deleted[] = " (deleted)";
  gsize bytes = sizeof(deleted) - 1;
  if (path_begins(reader, "/memfd:frida-agent")) return FALSE; /* ours: threads run it as they leave */
  if (path_begins(reader, "/memfd:") || path_begins(reader, "/dev/")) return TRUE;
  return reader->path_bytes >= bytes && memcmp(reader->path + reader->path_bytes - bytes, deleted, bytes) == 0;
}

/* A line; FALSE at the end. */
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
  read_path(reader, c);
  if (path_begins(reader, "[v")) mapping->is_file = 1; /* the kernel's own code, which stays as it is */
  mapping->writable = protection[1] == 'w';
  mapping->shared = protection[3] == 's' || is_written_elsewhere(reader);
  return TRUE;
}

/* The one that an address lies in: the last that was asked for, or a new look. The lock is held. */
static const Mapping *mapping_of(guint64 address) {
  Reader *reader = &maps_reader;
  Mapping *mapping = &control.mapping;
  if (address >= mapping->start && address < mapping->end) return mapping;
  reader->at = reader->filled = 0;
  reader->file = open("/proc/self/maps", 0);
  if (reader->file < 0) return NULL;
  do {
    if (!read_mapping(reader, mapping)) {
      mapping->start = mapping->end = 0;
      break;
    }
  } while (address >= mapping->end);
  close(reader->file);
  return address >= mapping->start && address < mapping->end ? mapping : NULL;
}

static void forget_mapping(void) { control.mapping.start = control.mapping.end = 0; }
