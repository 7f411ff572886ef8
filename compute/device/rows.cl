// Cross-entropy of rows of logits, and rows that indices address. INDEX is the type of targets and of indices.

// The largest element of a row of n and the sum of exp(x - top), as kernel.CrossEntropy has them; a work-group a row.
static inline float row_sum(__global const float *x, long n, __local float *lanes, float *most) {
	int l = get_local_id(0);
	float top = x[min((long)l, n - 1)], pieces = 0.0f, sum = 0.0f;
	for (long i = l; i < n; i += LANES) top = max_(top, x[i]);
	lanes[l] = top;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int w = LANES / 2; w > 0; w /= 2) {
		if (l < w) lanes[l] = max_(lanes[l], lanes[l + w]);
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	top = lanes[0];
	barrier(CLK_LOCAL_MEM_FENCE);
	for (long lo = 0; lo < n; lo += PIECE) {
		sum = 0.0f;
		for (long i = lo + l; i < min(lo + PIECE, n); i += LANES) sum += exp_(x[i] - top);
		lanes[l] = sum;
		add_lanes(lanes, l);
		sum = lanes[0];
		barrier(CLK_LOCAL_MEM_FENCE);
		if (lo / PIECE % LANES == l) pieces += sum;
	}
	if (n > PIECE) {
		lanes[l] = pieces;
		add_lanes(lanes, l);
		sum = lanes[0];
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	*most = top;
	return sum;
}

#define ROW_KERNELS(INDEX)                                                     \
	LOCAL(LANES) KERNEL(cross_entropy_##INDEX) {                               \
		__local float lanes[LANES];                                            \
		long n = table[at], row = get_group_id(0), target;                     \
		__global const float *x = FLOATS(1) + row * n;                         \
		float top, sum = row_sum(x, n, lanes, &top);                           \
		if (get_local_id(0) > 0) return;                                       \
		float loss = log_(sum);                                                \
		target = ((__global const INDEX *)(memory + table[at + 2]))[row];      \
		if (target >= 0 && target < n) loss -= x[target] - top;                \
		FLOATS(3)[row] = loss;                                                 \
	}                                                                          \
	LOCAL(LANES) KERNEL(cross_entropy_grad_##INDEX) {                          \
		__local float lanes[LANES];                                            \
		long n = table[at], row = get_group_id(0), target;                     \
		__global const float *x = FLOATS(1) + row * n;                         \
		__global float *to = FLOATS(3) + row * n;                              \
		float top, sum = row_sum(x, n, lanes, &top), d = FLOATS(4)[row], r = d / sum; \
		target = ((__global const INDEX *)(memory + table[at + 2]))[row];      \
		for (long i = get_local_id(0); i < n; i += LANES) {                    \
			float v = exp_(x[i] - top) * r;                                    \
			to[i] = i == target ? v - d : v;                                   \
		}                                                                      \
	}                                                                          \
	/* The position of the first index that is none of a row. */               \
	KERNEL(check_rows_##INDEX) {                                               \
		long i = get_global_id(0);                                             \
		if (i >= table[at]) return;                                            \
		long row = ((__global const INDEX *)(memory + table[at + 2]))[i];      \
		if (row < 0 || row >= table[at + 1]) atomic_min((volatile __global int *)(memory + table[at + 3]), (int)i); \
	}                                                                          \
	/* Rows of width words of 4 bytes, or of bytes. */                         \
	TAKE_ROWS(take_words_##INDEX, INDEX, uint)                                 \
	TAKE_ROWS(take_bytes_##INDEX, INDEX, uchar)                                \
	/* A work-item adds to a column, in the order of the indices. */           \
	KERNEL(add_rows_##INDEX) {                                                 \
		long count = table[at], rows = table[at + 1], width = table[at + 4], j = get_global_id(0); \
		if (j >= width) return;                                                \
		__global const INDEX *indices = (__global const INDEX *)(memory + table[at + 2]); \
		__global const float *updates = FLOATS(5);                             \
		__global float *to = FLOATS(6);                                        \
		for (long i = 0; i < count; i++) {                                     \
			long row = indices[i];                                             \
			if (row >= 0 && row < rows) to[row * width + j] += updates[i * width + j]; \
		}                                                                      \
	}
#define TAKE_ROWS(name, INDEX, T)                                              \
	KERNEL(name) {                                                             \
		long rows = table[at + 1], width = table[at + 4], j = get_global_id(0), i = get_global_id(1); \
		if (j >= width) return;                                                \
		long row = ((__global const INDEX *)(memory + table[at + 2]))[i];      \
		if (row >= 0 && row < rows)                                            \
			((__global T *)(memory + table[at + 6]))[i * width + j] =          \
				((__global const T *)(memory + table[at + 5]))[row * width + j]; \
	}
ROW_KERNELS(int)
ROW_KERNELS(long)

// Rows of bytes to every other place: pieces of a tensor that is put together.
KERNEL(place_rows) {
	long width = table[at + 2], j = get_global_id(0), row = get_global_id(1);
	if (j < width) memory[table[at + 1] + row * table[at + 3] + j] = memory[table[at] + row * width + j];
}
