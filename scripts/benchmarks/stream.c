/* STREAM's triad by its published definition (www.cs.virginia.edu/stream): a[i] = b[i] + scalar * c[i] in doubles, three
   arrays that are each four times the last cache or larger, the best of ten repetitions but the first, 24 bytes an element,
   threads by OpenMP. Written anew; prints MB/s. */

#include <omp.h>
#include <stdio.h>

#ifndef ELEMENTS
#define ELEMENTS 20000000
#endif
#define TIMES 10

/* Between the arrays, in elements: STREAM's rules leave it to whoever runs it. */
#ifndef OFFSET
#define OFFSET 0
#endif

static double a[ELEMENTS + OFFSET], b[ELEMENTS + OFFSET], c[ELEMENTS + OFFSET];

int main(void) {
#pragma omp parallel for
    for (long i = 0; i < ELEMENTS; i++)
        a[i] = 1.0, b[i] = 2.0, c[i] = 0.5;
    double best = 1e30;
    for (int n = 0; n < TIMES; n++) {
        double begin = omp_get_wtime();
#pragma omp parallel for
        for (long i = 0; i < ELEMENTS; i++)
            a[i] = b[i] + 3.0 * c[i];
        double took = omp_get_wtime() - begin;
        if (n > 0 && took < best)
            best = took;
    }
    printf("%.1f\n", 24.0 * ELEMENTS / best / 1e6);
    return a[ELEMENTS / 2] != 3.5;
}
