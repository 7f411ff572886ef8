// The steps of a plan that are no groups. A kernel gets the memory of the plan, the table of all numbers that the launches
// of the plan need, and where its own begin in it. Places are bytes from the begin of the memory.

#define KERNEL(name) __kernel void name(__global uchar *memory, __global const long *table, long at)
#define LOCAL(x) __attribute__((reqd_work_group_size(x, 1, 1)))
#define FLOATS(i) ((__global float *)(memory + table[at + (i)]))

#define CHUNK 512 // of k: part of the numerics
#define TILE 64   // rows and columns of a work-group
#define STEP 16   // of k in local memory
#define EACH 4    // rows and columns of a work-item
#define SIDE (TILE / EACH)

// Products: matmul.Gemm. k is never padded: fma(0, 0, -0) is +0, and a chain holds -0 after an underflow.
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void gemm(__global uchar *memory, __global const long *table, long at) {
	__local float as[STEP][TILE + 1], bs[STEP][TILE + 1];
	__global const long *t = table + at;
	long m = t[0], n = t[1], k = t[2], batch = get_group_id(2);
	__global const float *a = (__global const float *)(memory + t[3]) + batch * t[4];
	long arow = t[5], acol = t[6];
	__global const float *b = (__global const float *)(memory + t[7]) + batch * t[8];
	long brow = t[9], bcol = t[10];
	__global float *c = (__global float *)(memory + t[11]) + batch * m * n;
	int x = get_local_id(0), y = get_local_id(1), item = y * SIDE + x;
	long i0 = get_group_id(1) * TILE, j0 = get_group_id(0) * TILE;
	float total[EACH][EACH];
	for (int i = 0; i < EACH; i++)
		for (int j = 0; j < EACH; j++) total[i][j] = 0.0f;
	for (long k0 = 0; k0 < k; k0 += CHUNK) {
		float chain[EACH][EACH];
		for (int i = 0; i < EACH; i++)
			for (int j = 0; j < EACH; j++) chain[i][j] = 0.0f;
		long end = min(k0 + CHUNK, k);
		for (long from = k0; from < end; from += STEP) {
			for (int e = item; e < STEP * TILE; e += SIDE * SIDE) {
				int r = e / TILE, s = e % TILE;
				as[r][s] = i0 + s < m && from + r < end ? a[(i0 + s) * arow + (from + r) * acol] : 0.0f;
				bs[r][s] = j0 + s < n && from + r < end ? b[(from + r) * brow + (j0 + s) * bcol] : 0.0f;
			}
			barrier(CLK_LOCAL_MEM_FENCE);
			int steps = (int)min((long)STEP, end - from);
			for (int r = 0; r < steps; r++)
				for (int i = 0; i < EACH; i++)
					for (int j = 0; j < EACH; j++)
						chain[i][j] = fma(as[r][y + i * SIDE], bs[r][x + j * SIDE], chain[i][j]);
			barrier(CLK_LOCAL_MEM_FENCE);
		}
		for (int i = 0; i < EACH; i++)
			for (int j = 0; j < EACH; j++) total[i][j] = k0 == 0 ? chain[i][j] : total[i][j] + chain[i][j];
	}
	for (int i = 0; i < EACH; i++)
		for (int j = 0; j < EACH; j++) {
			long row = i0 + y + i * SIDE, column = j0 + x + j * SIDE;
			if (row < m && column < n) c[row * n + column] = total[i][j];
		}
}

#define LANES 16   // of a sum: part of the numerics
#define PIECE 4096 // of a sum: part of the numerics
#define BLOCK 64   // of the keys of attention: part of the numerics

// Adds the lanes of a work-group: the sum is in lanes[0].
static inline void add_lanes(__local float *lanes, int l) {
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int w = LANES / 2; w > 0; w /= 2) {
		if (l < w) lanes[l] += lanes[l + w];
		barrier(CLK_LOCAL_MEM_FENCE);
	}
}

// One level of the sums of rows (kernel.Path.Sum): a work-group adds a piece.
#define SUM_ROWS(name, term)                                                   \
	LOCAL(LANES) KERNEL(name) {                                                \
		__local float lanes[LANES];                                            \
		long n = table[at], pieces = table[at + 1], g = get_group_id(0);       \
		__global const float *x = FLOATS(2);                                   \
		long row = g / pieces, lo = g % pieces * PIECE, hi = min(lo + PIECE, n); \
		int l = get_local_id(0);                                               \
		float sum = 0.0f;                                                      \
		for (long i = lo + l; i < hi; i += LANES) {                            \
			float v = x[row * n + i];                                          \
			sum += term;                                                       \
		}                                                                      \
		lanes[l] = sum;                                                        \
		add_lanes(lanes, l);                                                   \
		if (l == 0) FLOATS(3)[g] = lanes[0];                                   \
	}
SUM_ROWS(sum_rows, v)
SUM_ROWS(sum_squares, v * v)

// One level of the sums of columns: a work-item adds a piece of one, and the results of neighbours are neighbours.
KERNEL(sum_columns) {
	long n = table[at], pieces = table[at + 1], inner = table[at + 4], j = get_global_id(0);
	if (j >= inner) return;
	long piece = get_global_id(1), outer = get_global_id(2), lo = piece * PIECE, hi = min(lo + PIECE, n);
	__global const float *x = FLOATS(2) + outer * n * inner + j;
	float lanes[LANES];
	for (int l = 0; l < LANES; l++) lanes[l] = 0.0f;
	long i = lo;
	for (; i + LANES <= hi; i += LANES)
		for (int l = 0; l < LANES; l++) lanes[l] += x[(i + l) * inner];
	for (int l = 0; i + l < hi; l++) lanes[l] += x[(i + l) * inner];
	for (int w = LANES / 2; w > 0; w /= 2)
		for (int l = 0; l < w; l++) lanes[l] += lanes[l + w];
	FLOATS(3)[(outer * pieces + piece) * inner + j] = lanes[0];
}

// Reductions in any order, [outer, n, inner] over n.
#define FOLD(name, T, f)                                                       \
	KERNEL(name) {                                                             \
		long n = table[at], inner = table[at + 4], j = get_global_id(0), outer = get_global_id(2); \
		if (j >= inner) return;                                                \
		__global const T *x = (__global const T *)(memory + table[at + 2]) + outer * n * inner + j; \
		T v = x[0];                                                            \
		for (long i = 1; i < n; i++) v = f(v, x[i * inner]);                   \
		((__global T *)(memory + table[at + 3]))[outer * inner + j] = v;       \
	}
#define FOLDS(T)                                                               \
	FOLD(fold_sum_##T, T, add_##T)                                             \
	FOLD(fold_max_##T, T, max_##T)                                             \
	FOLD(fold_min_##T, T, min_##T)
FOLDS(char)
FOLDS(int)
FOLDS(long)
FOLDS(uchar)
FOLDS(uint)
FOLD(fold_max_float, float, max_)
FOLD(fold_min_float, float, min_)

// Copies 4 bytes a work-item, and what is left at the end.
KERNEL(copy_bytes) {
	long bytes = table[at + 2], i = 4 * get_global_id(0);
	__global uchar *from = memory + table[at], *to = memory + table[at + 1];
	if (i + 4 <= bytes) *(__global uint *)(to + i) = *(__global uint *)(from + i);
	else
		for (; i < bytes; i++) to[i] = from[i];
}
