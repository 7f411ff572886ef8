// Causal attention of heads of WIDTH elements and its gradients, to the last bit those of attention.Head: a work-item
// computes a row of a result, block of keys by block of keys or chunk of queries by chunk of queries. WIDTH is replaced by
// a number.

// A query sees the keys at its own position and before, and visits all keys of the blocks up to its own.
#define ATTENTION_WIDTH                                                        \
	__global const long *t = table + at;                                       \
	long heads = t[0], groups = t[1], queries = t[2], keys = t[3], query = t[4], key = t[5]; \
	long batch = get_global_id(2);
#define ROWS_WIDTH(i, head) ((__global float *)(memory + t[i]) + batch * t[(i) + 1] + (head) * t[(i) + 2])

// The chain of products of two rows.
static inline float dot_WIDTH(__global const float *x, __global const float *y) {
	float total = 0.0f;
	for (int lo = 0; lo < WIDTH; lo += CHUNK) {
		float chain = 0.0f;
		for (int d = lo; d < min(lo + CHUNK, WIDTH); d++) chain = fma(x[d], y[d], chain);
		total = lo == 0 ? chain : total + chain;
	}
	return total;
}

// o and lse.
KERNEL(attention_forward_WIDTH) {
	ATTENTION_WIDTH
	long i = get_global_id(0), head = get_global_id(1);
	if (i >= queries) return;
	long shared = head / (heads / groups), krow = t[13], vrow = t[17];
	__global const float *q = ROWS_WIDTH(6, head) + i * t[9], *k = ROWS_WIDTH(10, shared);
	long seen = min(keys, query + i + 1 - key), visited = min(keys, ((query + i) / BLOCK + 1) * BLOCK - key);
	float top = dot_WIDTH(q, k);
	for (long j = 1; j < seen; j++) top = max_(top, dot_WIDTH(q, k + j * krow));
	float sum = 0.0f, lanes[LANES], pieces[LANES];
	for (int l = 0; l < LANES; l++) lanes[l] = pieces[l] = 0.0f;
	for (long j = 0; j < seen; j++) {
		lanes[j % LANES] += exp_(dot_WIDTH(q, k + j * krow) - top);
		if (j % PIECE < PIECE - 1 && j < seen - 1) continue;
		for (int w = LANES / 2; w > 0; w /= 2)
			for (int l = 0; l < w; l++) lanes[l] += lanes[l + w];
		sum = lanes[0];
		pieces[j / PIECE % LANES] += sum;
		for (int l = 0; l < LANES; l++) lanes[l] = 0.0f;
	}
	if (seen > PIECE) {
		for (int w = LANES / 2; w > 0; w /= 2)
			for (int l = 0; l < w; l++) pieces[l] += pieces[l + w];
		sum = pieces[0];
	}
	if (t[40] >= 0) FLOATS(40)[(batch * heads + head) * queries + i] = top + log_(sum);
	if (t[22] < 0) return;
	__global const float *v = ROWS_WIDTH(14, shared);
	float scale = 1.0f / sum, row[WIDTH];
	for (long lo = 0; lo < visited;) {
		long hi = min(keys, (key + lo) / BLOCK * BLOCK + BLOCK - key);
		float chain[WIDTH];
		for (int d = 0; d < WIDTH; d++) chain[d] = 0.0f;
		for (long j = lo; j < hi; j++) {
			float w = j < seen ? exp_(dot_WIDTH(q, k + j * krow) - top) : 0.0f;
			for (int d = 0; d < WIDTH; d++) chain[d] = fma(w, v[j * vrow + d], chain[d]);
		}
		for (int d = 0; d < WIDTH; d++) row[d] = lo == 0 ? chain[d] : row[d] + chain[d];
		lo = hi;
	}
	__global float *o = ROWS_WIDTH(22, head) + i * t[25];
	for (int d = 0; d < WIDTH; d++) o[d] = row[d] * scale;
}

// dq.
KERNEL(attention_queries_WIDTH) {
	ATTENTION_WIDTH
	long i = get_global_id(0), head = get_global_id(1);
	if (i >= queries) return;
	long shared = head / (heads / groups), krow = t[13], vrow = t[17], list = (batch * heads + head) * queries + i;
	__global const float *q = ROWS_WIDTH(6, head) + i * t[9], *k = ROWS_WIDTH(10, shared), *v = ROWS_WIDTH(14, shared);
	__global const float *given = ROWS_WIDTH(18, head) + i * t[21];
	float shift = FLOATS(38)[list], mean = FLOATS(39)[list], row[WIDTH];
	long seen = min(keys, query + i + 1 - key), visited = min(keys, ((query + i) / BLOCK + 1) * BLOCK - key);
	for (long lo = 0; lo < visited;) {
		long hi = min(keys, (key + lo) / BLOCK * BLOCK + BLOCK - key);
		float chain[WIDTH];
		for (int d = 0; d < WIDTH; d++) chain[d] = 0.0f;
		for (long j = lo; j < hi; j++) {
			float ds = 0.0f;
			if (j < seen)
				ds = exp_(dot_WIDTH(q, k + j * krow) - shift) * (dot_WIDTH(given, v + j * vrow) - mean);
			for (int d = 0; d < WIDTH; d++) chain[d] = fma(ds, k[j * krow + d], chain[d]);
		}
		for (int d = 0; d < WIDTH; d++) row[d] = lo == 0 ? chain[d] : row[d] + chain[d];
		lo = hi;
	}
	__global float *dq = ROWS_WIDTH(26, head) + i * t[29];
	for (int d = 0; d < WIDTH; d++) dq[d] = row[d];
}

// dk, and dv: the sums over queries of the factor of a pair of query and key times the rows that are given.
#define OVER_QUERIES_WIDTH(name, result, rows, factor)                         \
	KERNEL(name) {                                                             \
		ATTENTION_WIDTH                                                        \
		long j = get_global_id(0), shared = get_global_id(1);                  \
		if (j >= keys) return;                                                 \
		long each = heads / groups, first = min(max(0l, (key + j) / BLOCK * BLOCK - query), queries); \
		__global const float *k = ROWS_WIDTH(10, shared) + j * t[13];          \
		float row[WIDTH];                                                      \
		for (int d = 0; d < WIDTH; d++) row[d] = 0.0f;                         \
		for (long head = shared * each; head < (shared + 1) * each; head++) {  \
			__global const float *q = ROWS_WIDTH(6, head), *given = ROWS_WIDTH(18, head), *from = ROWS_WIDTH(rows, head); \
			__global const float *lse = FLOATS(38) + (batch * heads + head) * queries; \
			for (long lo = first; lo < queries; lo += CHUNK) {                 \
				float chain[WIDTH];                                            \
				for (int d = 0; d < WIDTH; d++) chain[d] = 0.0f;               \
				for (long i = lo; i < min(lo + CHUNK, queries); i++) {         \
					float x = 0.0f;                                            \
					if (key + j <= query + i) {                                \
						x = exp_(dot_WIDTH(q + i * t[9], k) - lse[i]);         \
						factor                                                 \
					}                                                          \
					for (int d = 0; d < WIDTH; d++) chain[d] = fma(x, from[i * t[(rows) + 3] + d], chain[d]); \
				}                                                              \
				int begins = head == shared * each && lo == first;             \
				for (int d = 0; d < WIDTH; d++) row[d] = begins ? chain[d] : row[d] + chain[d]; \
			}                                                                  \
		}                                                                      \
		__global float *to = ROWS_WIDTH(result, shared) + j * t[(result) + 3]; \
		for (int d = 0; d < WIDTH; d++) to[d] = row[d];                        \
	}
OVER_QUERIES_WIDTH(attention_keys_WIDTH, 30, 6, {
	__global const float *v = ROWS_WIDTH(14, shared) + j * t[17];
	x *= dot_WIDTH(given + i * t[21], v) - FLOATS(39)[(batch * heads + head) * queries + i];
})
OVER_QUERIES_WIDTH(attention_values_WIDTH, 34, 18, {})
