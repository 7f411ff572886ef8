// Products of blocks of integers: exact.Product. The sum of a block is exact, so its order is free.

#define WHOLE 64       // elements of the longest block
#define LEAST_BLOCK -63 // exponent of a block: part of the numerics
#define MOST_BLOCK 38

// The integer nearest to x * down, ties to even: the sum is below 2^24. A block that is NaN has a down of 0.
static inline short nearest_(float x, float down) {
	return down == 0.0f ? (short)0 : (short)(as_int(x * down + 12582912.0f) - as_int(12582912.0f));
}

// raise and exponent are those of Form.mantissa. Integers of b of 15 bits are 128*h+l, -64 <= l <= 63, so that no sum
// leaves 32 bits.
#define GEMM_EXACT(name, wide, raise, exponent)                                \
	__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))              \
	void name(__global uchar *memory, __global const long *table, long at) {   \
		__local short as[WHOLE][TILE + 2], bs[WHOLE][TILE + 2];                \
		__local float ups[2 * TILE], downs[2 * TILE];                          \
		__global const long *t = table + at;                                   \
		long m = t[0], n = t[1], k = t[2], batch = get_group_id(2), block = t[12]; \
		__global const float *a = (__global const float *)(memory + t[3]) + batch * t[4]; \
		long arow = t[5], acol = t[6];                                         \
		__global const float *b = (__global const float *)(memory + t[7]) + batch * t[8]; \
		long brow = t[9], bcol = t[10];                                        \
		__global float *c = (__global float *)(memory + t[11]) + batch * m * n; \
		int x = get_local_id(0), y = get_local_id(1), item = y * SIDE + x;     \
		long i0 = get_group_id(1) * TILE, j0 = get_group_id(0) * TILE;         \
		float total[EACH][EACH];                                               \
		for (int i = 0; i < EACH; i++)                                         \
			for (int j = 0; j < EACH; j++) total[i][j] = 0.0f;                 \
		for (long k0 = 0; k0 < k; k0 += block) {                               \
			int steps = (int)min(block, k - k0);                               \
			if (item < 2 * TILE) { /* the exponents of rows of a, then of columns of b */ \
				long line = item < TILE ? i0 + item : j0 + item - TILE, along = item < TILE ? acol : brow; \
				__global const float *from = item < TILE ? a + line * arow + k0 * acol : b + line * bcol + k0 * brow; \
				uint most = 0;                                                 \
				if (line < (item < TILE ? m : n))                              \
					for (int r = 0; r < steps; r++) most = max(most, as_uint(from[r * along]) & ~SIGN_); \
				int e = max((int)((most + raise) >> 23) - exponent, LEAST_BLOCK); \
				ups[item] = e > MOST_BLOCK ? NAN_ : as_float((uint)(127 + e) << 23); \
				downs[item] = e > MOST_BLOCK ? 0.0f : as_float((uint)(127 - e) << 23); \
			}                                                                  \
			barrier(CLK_LOCAL_MEM_FENCE);                                      \
			for (int e = item; e < steps * TILE; e += SIDE * SIDE) {           \
				int r = e / TILE, s = e % TILE;                                \
				as[r][s] = i0 + s < m ? nearest_(a[(i0 + s) * arow + (k0 + r) * acol], downs[s]) : (short)0; \
				bs[r][s] = j0 + s < n ? nearest_(b[(k0 + r) * brow + (j0 + s) * bcol], downs[TILE + s]) : (short)0; \
			}                                                                  \
			barrier(CLK_LOCAL_MEM_FENCE);                                      \
			int high[EACH][EACH], low[EACH][EACH];                             \
			for (int i = 0; i < EACH; i++)                                     \
				for (int j = 0; j < EACH; j++) high[i][j] = low[i][j] = 0;     \
			for (int r = 0; r < steps; r++)                                    \
				for (int j = 0; j < EACH; j++) {                               \
					int v = bs[r][x + j * SIDE], h = wide ? (v + 64) >> 7 : 0, l = v - h * 128; \
					for (int i = 0; i < EACH; i++) {                           \
						int u = as[r][y + i * SIDE];                           \
						low[i][j] += u * l;                                    \
						if (wide) high[i][j] += u * h;                         \
					}                                                          \
				}                                                              \
			for (int i = 0; i < EACH; i++)                                     \
				for (int j = 0; j < EACH; j++) {                               \
					float sum = wide ? (float)((long)high[i][j] * 128 + low[i][j]) : (float)low[i][j]; \
					total[i][j] += sum * (ups[y + i * SIDE] * ups[TILE + x + j * SIDE]); \
				}                                                              \
			barrier(CLK_LOCAL_MEM_FENCE);                                      \
		}                                                                      \
		for (int i = 0; i < EACH; i++)                                         \
			for (int j = 0; j < EACH; j++) {                                   \
				long row = i0 + y + i * SIDE, column = j0 + x + j * SIDE;      \
				if (row < m && column < n) c[row * n + column] = total[i][j];  \
			}                                                                  \
	}
GEMM_EXACT(gemm_exact8, 0, 0x1ffffu, 133)
GEMM_EXACT(gemm_exact15, 1, 0x103ffu, 140)
