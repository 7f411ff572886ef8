// Tensors that are made of places or of random words, and what is put among, taken from or added over windows.

#define IOTA(T)                                                                \
	KERNEL(iota_##T) {                                                         \
		long i = get_global_id(0);                                             \
		if (i < table[at]) ((__global T *)(memory + table[at + 1]))[i] = (T)(i / table[at + 2] % table[at + 3]); \
	}
IOTA(float)
IOTA(char)
IOTA(int)
IOTA(long)
IOTA(uchar)
IOTA(uint)

// Philox4x32-10: philox.Block. A work-item makes four words.
KERNEL(random) {
	long i = get_global_id(0), n = table[at];
	if (4 * i >= n) return;
	__global const long *key = (__global const long *)(memory + table[at + 1]);
	__global uint *to = (__global uint *)(memory + table[at + 2]);
	ulong seed = key[0], stream = key[1], index = (ulong)key[2] + (ulong)i;
	uint c[4] = {(uint)index, (uint)(index >> 32), (uint)stream, (uint)(stream >> 32)};
	uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
	for (int round = 0; round < 10; round++) {
		uint high = mul_hi(0xd2511f53u, c[0]), low = 0xd2511f53u * c[0];
		uint high2 = mul_hi(0xcd9e8d57u, c[2]), low2 = 0xcd9e8d57u * c[2];
		c[0] = high2 ^ c[1] ^ k0;
		c[1] = low2;
		c[2] = high ^ c[3] ^ k1;
		c[3] = low;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	for (int w = 0; w < 4 && 4 * i + w < n; w++) to[4 * i + w] = c[w];
}

// One element everywhere; then the elements of a tensor, each at its own place: dimensions and strides from 4 on.
#define PAD(bits, T)                                                           \
	KERNEL(fill_##bits) {                                                      \
		long i = get_global_id(0);                                             \
		if (i < table[at]) ((__global T *)(memory + table[at + 2]))[i] = *(__global const T *)(memory + table[at + 1]); \
	}                                                                          \
	KERNEL(scatter_##bits) {                                                   \
		long i = get_global_id(0), place = 0, rest = i;                        \
		if (i >= table[at]) return;                                            \
		for (long d = table[at + 3] - 1; d >= 0; d--) {                        \
			long dim = table[at + 4 + 2 * d];                                  \
			place += rest % dim * table[at + 5 + 2 * d];                       \
			rest /= dim;                                                       \
		}                                                                      \
		((__global T *)(memory + table[at + 2]))[place] = ((__global const T *)(memory + table[at + 1]))[i]; \
	}
PAD(8, uchar)
PAD(16, ushort)
PAD(32, uint)
PAD(64, ulong)

// The first of the largest elements of a row, or its first NaN: kernel.FirstMax. A work-item a row.
KERNEL(first_max) {
	long row = get_global_id(0), n = table[at + 1], best = 0;
	if (row >= table[at]) return;
	__global const float *x = FLOATS(2) + row * n;
	__global uchar *to = memory + table[at + 3] + row * n;
	for (long i = 0; i < n; i++) to[i] = 0;
	for (long i = 1; i < n && x[best] == x[best]; i++)
		if (x[i] > x[best] || x[i] != x[i]) best = i;
	to[best] = 1;
}

// The sum over all windows that show an element, of four dimensions: of each how many elements there are, windows, the
// size of one, their distance and that of their elements. Of a window at p it is element q with p*distance + q*apart.
KERNEL(sum_windows) {
	long i = get_global_id(0), rest = i, first[4], last[4], c[4];
	if (i >= table[at]) return;
	__global const long *t = table + at + 3;
	for (int d = 3; d >= 0; d--) {
		long n = t[5 * d], windows = t[5 * d + 1], reach = (t[5 * d + 2] - 1) * t[5 * d + 4], distance = t[5 * d + 3];
		c[d] = rest % n;
		rest /= n;
		first[d] = c[d] > reach ? (c[d] - reach + distance - 1) / distance : 0;
		last[d] = min(c[d] / distance, windows - 1);
	}
	__global const float *x = FLOATS(1);
	float sum = 0.0f;
	long p[4];
	for (p[0] = first[0]; p[0] <= last[0]; p[0]++)
		for (p[1] = first[1]; p[1] <= last[1]; p[1]++)
			for (p[2] = first[2]; p[2] <= last[2]; p[2]++)
				for (p[3] = first[3]; p[3] <= last[3]; p[3]++) {
					long window = 0, element = 0, sizes = 1;
					int shown = 1;
					for (int d = 0; d < 4; d++) {
						long from = c[d] - p[d] * t[5 * d + 3], apart = t[5 * d + 4];
						shown &= from % apart == 0;
						window = window * t[5 * d + 1] + p[d];
						element = element * t[5 * d + 2] + from / apart;
						sizes *= t[5 * d + 2];
					}
					if (shown) sum += x[window * sizes + element];
				}
	FLOATS(2)[i] = sum;
}
