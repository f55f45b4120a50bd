/* Text tables; the loops are declared in pegfan/datasets/_kernels.py. */
#include "common.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { NUL, SPACE, TAB, QUOTE, RETURN, LOOSE };

/* Whether a cell starts with a 0 at k that goes on as a whole number, or with -0. */
ALWAYS_INLINE int is_loose(const uint8_t *codes, int64_t k, uint8_t mark) {
    const int sign = codes[k - 1] == '-';
    const uint8_t before = sign ? codes[k - 2] : codes[k - 1], after = codes[k + 1];
    const int starts = before == mark || before == '\n' || before == '"' || before == ' ';
    return starts && ((after >= '0' && after <= '9') || after == 'x' || after == 'X' || (sign && after != '.'));
}

WIDE int64_t look_through(const uint8_t *codes, int64_t n, int64_t start, int64_t delimiter, uint8_t *found) {
    const uint8_t mark = (uint8_t)delimiter;
    uint8_t nul = 0, space = 0, tab = 0, quote = 0, cr = 0, loose = 0;
    int64_t lines = 0, k = 2;
    for (int64_t a = start; a < n; a++) {
        const uint8_t c = codes[a];
        nul |= c == 0 ? 1 : 0;
        space |= c == ' ' ? 1 : 0;
        tab |= c == '\t' ? 1 : 0;
        quote |= c == '"' ? 1 : 0;
        cr |= c == '\r' ? 1 : 0;
    }
    for (int64_t a = start; a < n;) {
        const int64_t stop = n - a < 128 ? n : a + 128;
        uint8_t some = 0; /* bytes are counted in bytes, as far as these reach */
        for (; a < stop; a++) some = (uint8_t)(some + (codes[a] == '\n' ? 1 : 0));
        lines += some;
    }
#if defined(__SSE2__)
    for (; k + 17 <= n && !loose; k += 16) { /* zeros that follow what starts a cell: few, and these are looked at */
        const __m128i zero = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(codes + k)), _mm_set1_epi8('0'));
        const __m128i before = _mm_loadu_si128((const __m128i *)(codes + k - 1));
        __m128i starts = _mm_or_si128(_mm_cmpeq_epi8(before, _mm_set1_epi8((char)mark)),
                                      _mm_cmpeq_epi8(before, _mm_set1_epi8('\n')));
        starts = _mm_or_si128(starts, _mm_cmpeq_epi8(before, _mm_set1_epi8('"')));
        starts = _mm_or_si128(starts, _mm_cmpeq_epi8(before, _mm_set1_epi8(' ')));
        starts = _mm_or_si128(starts, _mm_cmpeq_epi8(before, _mm_set1_epi8('-')));
        unsigned bits = (unsigned)_mm_movemask_epi8(_mm_and_si128(zero, starts));
        for (; bits; bits &= bits - 1) loose |= (uint8_t)is_loose(codes, k + __builtin_ctz(bits), mark);
    }
#endif
    for (; k < n - 1 && !loose; k++) loose = codes[k] == '0' && is_loose(codes, k, mark);
    found[NUL] |= nul, found[SPACE] |= space, found[TAB] |= tab;
    found[QUOTE] |= quote, found[RETURN] |= cr, found[LOOSE] |= loose;
    return lines;
}

/* Everything about the line that is being cut. */
typedef struct {
    const uint8_t *block;
    int64_t width, start, column, line, cells, row_cells, rows, trouble, quoted;
    const uint8_t *wanted;
    int32_t *begins, *ends;
} Cutter;

ALWAYS_INLINE int end_cell(Cutter *at, int64_t end, int newline) {
    int64_t begin = at->start;
    int64_t stop = end;
    at->start = end + 1;
    if (newline && stop > begin && at->block[stop - 1] == '\r') stop--;
    if (newline && at->column == 0 && stop == begin) { /* an empty line */
        at->line = at->start;
        return 1;
    }
    if (at->column >= at->width || (newline && at->column + 1 != at->width)) return 0;
    if (at->wanted[at->column]) {
        if (at->quoted) {
            if (stop - begin >= 2 && at->block[begin] == '"' && at->block[stop - 1] == '"') begin++, stop--;
            if (memchr(at->block + begin, '"', (size_t)(stop - begin)) != NULL) return 0;
        }
        at->begins[at->row_cells] = (int32_t)begin;
        at->ends[at->row_cells++] = (int32_t)stop;
    }
    at->column++;
    if (newline) {
        at->column = 0;
        at->line = at->start;
        at->cells = at->row_cells;
        at->rows++;
    }
    return 1;
}

int64_t cut_cells(const uint8_t *block, int64_t n, int64_t delimiter, int64_t quoted, const uint8_t *wanted,
                  int64_t width, int32_t *begins, int32_t *ends, int64_t *state) {
    Cutter at = {.block = block, .width = width, .wanted = wanted, .begins = begins, .ends = ends, .quoted = quoted};
    const uint8_t mark = (uint8_t)delimiter;
    int64_t k = 0;
    int good = 1;
#if defined(__SSE2__)
    const __m128i marks = _mm_set1_epi8((char)mark), lines = _mm_set1_epi8('\n');
    for (; k + 16 <= n && good; k += 16) {
        const __m128i some = _mm_loadu_si128((const __m128i *)(block + k));
        unsigned bits =
            (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(some, marks), _mm_cmpeq_epi8(some, lines)));
        while (bits && good) {
            const int64_t place = k + __builtin_ctz(bits);
            good = end_cell(&at, place, block[place] == '\n');
            bits &= bits - 1;
        }
    }
#endif
    for (; k < n && good; k++)
        if (block[k] == mark || block[k] == '\n') good = end_cell(&at, k, block[k] == '\n');
    state[0] = at.line;
    state[1] = at.rows;
    state[2] = !good;
    return at.cells;
}

/* Eight bytes, the first the lowest; fewer at the end of a text. */
ALWAYS_INLINE uint64_t load(const uint8_t *p) {
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

ALWAYS_INLINE uint64_t load_some(const uint8_t *p, int64_t length, int64_t room) {
    if (length >= 8) return load(p);
    if (length <= 0) return 0;
    if (room >= 8) return load(p) & (~UINT64_C(0) >> (64 - 8 * length));
    uint64_t word = 0;
    for (int64_t k = 0; k < length; k++) word |= (uint64_t)p[k] << (8 * k);
    return word;
}

static const uint64_t STEP = UINT64_C(0x9E3779B97F4A7C15), CODE = UINT64_C(0xFFFFFFFF);
enum { SHORT = 11, AHEAD = 32 };

/* What stands for a text in a slot, but for its code: of a short one its bytes and its length, of a longer one a hash,
   its length as far as there is room, and a mark that no short one has. */
typedef struct {
    uint64_t one, other, hash;
} Key;

ALWAYS_INLINE Key key_of(const uint8_t *p, int64_t length, int64_t room, uint64_t seed) {
    Key key = {.one = load_some(p, length, room)};
    if (length <= SHORT) {
        const uint64_t rest = length > 8 ? load_some(p + 8, length - 8, room - 8) : 0;
        key.other = (rest | (uint64_t)length << 24) << 32;
        key.hash = mix(mix(key.one ^ seed) + key.other + STEP);
        return key;
    }
    key.hash = mix(key.one ^ seed);
    for (int64_t k = 8; k < length; k += 8) key.hash = mix(key.hash + load_some(p + k, length - k, room - k) + STEP);
    key.hash = mix(key.hash + (uint64_t)length);
    key.one = key.hash;
    key.other = (UINT64_C(0xFF000000) | ((uint64_t)length & 0xFFFFFF)) << 32;
    return key;
}

void place_texts(const uint8_t *texts, int64_t n_texts, int64_t count, const int64_t *starts, uint64_t seed,
                 uint64_t *slots, int64_t n_slots) {
    const uint64_t mask = (uint64_t)n_slots / 2 - 1;
    for (int64_t code = 0; code < count; code++) {
        const int64_t begin = starts[code];
        const Key key = key_of(texts + begin, starts[code + 1] - begin, n_texts - begin, seed);
        uint64_t place = key.hash & mask;
        while (slots[2 * place + 1] & CODE) place = (place + 1) & mask;
        slots[2 * place] = key.one;
        slots[2 * place + 1] = key.other | (uint64_t)(code + 1);
    }
}

#define INDEX int32_t
#define NAME(function) function##__i4
#include "reading.inc"
#define INDEX int64_t
#define NAME(function) function##__i8
#include "reading.inc"

void text_keys(const uint8_t *texts, int64_t n_texts, const int64_t *starts, const int64_t *rows, int64_t n,
               int64_t depth, uint64_t *keys) {
    for (int64_t k = 0; k < n; k++) {
        const int64_t begin = starts[rows[k]] + depth, length = starts[rows[k] + 1] - begin;
        const uint64_t word = length > 0 ? load_some(texts + begin, length, n_texts - begin) : 0;
        uint64_t turned = 0; /* the first byte the highest, so that numbers sort as texts do */
        for (int b = 0; b < 8; b++) turned |= (word >> (8 * b) & 0xFF) << (56 - 8 * b);
        keys[k] = turned;
    }
}

void spread_texts(const uint8_t *texts, const int64_t *starts, const int64_t *codes, int64_t n, uint32_t *out,
                  int64_t width) {
    for (int64_t k = 0; k < n; k++) {
        const int64_t begin = starts[codes[k]], length = starts[codes[k] + 1] - begin;
        for (int64_t b = 0; b < length; b++) out[k * width + b] = texts[begin + b];
    }
}

void copy_texts(const uint8_t *texts, const int64_t *starts, const int64_t *codes, int64_t n, uint8_t *out) {
    for (int64_t k = 0; k < n; k++) {
        const int64_t begin = starts[codes[k]], length = starts[codes[k] + 1] - begin;
        if (!length) continue;
        memcpy(out, texts + begin, (size_t)length);
        out += length;
    }
}

void take_all(const int32_t *values, const int32_t *places, int64_t n, int32_t *out) {
    for (int64_t k = 0; k < n; k++) out[k] = values[places[k]];
}
