/* The beginnings of structures that frida's headers do not show, as they are in the version that this is made for. */
typedef struct {
  int reference_count;
  int padding;
  guint64 capstone;
  const guint8 *input_start, *input_current;
  guint64 input_pc;
  GumX86Writer *output;
  gpointer *instructions;
  guint32 input_position, output_position;
  int end_of_block, end_of_input;
} Relocator;

typedef struct {
  gpointer instruction;
  Relocator *relocator;
  gpointer writer, slow_writer;
  gpointer continuation; /* where the block goes on when the memory for copies is full */
} Generator;

typedef struct {
  gpointer execution_context, execution_block;
  Generator *generator;
} Iterator;
