/* rate.h - tokens a second, as shown while an answer is written: over the last
 * two seconds, prompt and waiting time left out.
 * Thread-safety: each belongs to one thread. */
#ifndef APP_RATE_H
#define APP_RATE_H

#include <stdint.h>

enum { RATE_SLOTS = 96 };

struct rate {
    struct rate_slot {
        uint64_t first_ns, last_ns; /* of the arrivals counted here */
        uint32_t tokens;
    } slots[RATE_SLOTS]; /* a ring, oldest at `first` */
    uint32_t first, n;
};

void rate_reset(struct rate *r);
/* So many tokens arrived together. Times of clock_ns, not decreasing. */
void rate_add(struct rate *r, uint64_t now_ns, uint32_t tokens);
/* 0 before the second arrival. The tokens of the oldest arrival in the window
 * only start the clock. Without arrivals for a second the rate sinks. */
double rate_get(const struct rate *r, uint64_t now_ns);

/* The rates of the last answer, one for each half second while it was written, for a
 * small graph. */
enum { GRAPH_POINTS = 24 };
struct graph {
    float v[GRAPH_POINTS]; /* oldest first */
    uint32_t n;
    uint64_t from_ns; /* 0: nothing came yet */
    uint32_t tokens;  /* by then */
};

void graph_reset(struct graph *g);
/* So many tokens have come in all. */
void graph_add(struct graph *g, uint64_t now_ns, uint32_t tokens);

#endif
