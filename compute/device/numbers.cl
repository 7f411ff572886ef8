// Functions of numbers, to the last bit those of package kernel, which says what they compute and why. Every operation is
// rounded on its own.

#define NAN_ as_float(0x7fc00000u)
#define INF_ as_float(0x7f800000u)
#define SIGN_ 0x80000000u

static inline float canonical_(float x) { return x != x ? NAN_ : x; }
static inline float neg_(float x) { return as_float(as_uint(x) ^ SIGN_); }
static inline float abs_(float x) { return as_float(as_uint(x) & ~SIGN_); }
static inline float sign_(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }

// NaN if either is; of zeros +0 for max_, -0 for min_. The built-in functions ignore a NaN, and choose any zero.
static inline float max_(float x, float y) {
	return x != x ? x : y != y ? y : x == y ? as_float(as_uint(x) & as_uint(y)) : x > y ? x : y;
}
static inline float min_(float x, float y) {
	return x != x ? x : y != y ? y : x == y ? as_float(as_uint(x) | as_uint(y)) : x < y ? x : y;
}

// Integers wrap around: they are added as unsigned ones, because a signed sum must not overflow. x/0 is 0.
#define INTEGERS(T, U)                                                         \
	static inline T add_##T(T x, T y) { return (T)((U)x + (U)y); }                    \
	static inline T sub_##T(T x, T y) { return (T)((U)x - (U)y); }                    \
	static inline T mul_##T(T x, T y) { return (T)((U)x * (U)y); }                    \
	static inline T max_##T(T x, T y) { return x > y ? x : y; }                       \
	static inline T min_##T(T x, T y) { return x < y ? x : y; }
#define SIGNED(T, U)                                                           \
	INTEGERS(T, U)                                                             \
	static inline T neg_##T(T x) { return (T)(0 - (U)x); }                            \
	static inline T abs_##T(T x) { return x < 0 ? neg_##T(x) : x; }                   \
	static inline T sign_##T(T x) { return (T)((x > 0) - (x < 0)); }                  \
	static inline T div_##T(T x, T y) { return y == 0 ? (T)0 : y == -1 ? neg_##T(x) : (T)(x / y); }
#define UNSIGNED(T)                                                            \
	INTEGERS(T, T)                                                             \
	static inline T neg_##T(T x) { return (T)(0 - x); }                               \
	static inline T abs_##T(T x) { return x; }                                        \
	static inline T sign_##T(T x) { return (T)(x > 0); }                              \
	static inline T div_##T(T x, T y) { return y == 0 ? (T)0 : (T)(x / y); }
SIGNED(char, uchar)
SIGNED(int, uint)
SIGNED(long, ulong)
UNSIGNED(uchar)
UNSIGNED(uint)

// From float: cut off, within the range of the type, NaN to 0. above is the smallest float that does not fit.
#define FROM_FLOAT(T, lowest, highest, above)                                  \
	static inline T to_##T(float x) {                                                 \
		return x != x ? (T)0 : x <= (float)(lowest) ? (T)(lowest) : x >= above ? (T)(highest) : (T)x; \
	}
FROM_FLOAT(char, -128, 127, 127.0f)
FROM_FLOAT(uchar, 0, 255, 255.0f)
FROM_FLOAT(int, INT_MIN, INT_MAX, 2147483648.0f)
FROM_FLOAT(uint, 0, UINT_MAX, 4294967296.0f)
FROM_FLOAT(long, LONG_MIN, LONG_MAX, 9223372036854775808.0f)

static inline ushort to_float16(float x) {
	uint b = as_uint(x), sign = (b >> 16) & 0x8000u;
	b &= ~SIGN_;
	if (b > 0x7f800000u) return (ushort)0x7e00;
	if (b >= 0x477ff000u) return (ushort)(sign | 0x7c00u);
	if (b < 0x38800000u) return (ushort)(sign | (as_uint(as_float(b) + 0.5f) - 0x3f000000u));
	b += 0xfffu + (b >> 13 & 1u);
	return (ushort)(sign | ((b - 0x38000000u) >> 13));
}
static inline float from_float16(ushort h) {
	uint sign = (uint)(h & 0x8000u) << 16, b = h & 0x7fffu;
	if (b >= 0x7c00u) return as_float(sign | 0x7f800000u | (b & 0x3ffu) << 13);
	if (b < 0x400u) return as_float(sign | as_uint((float)b * 0x1p-24f));
	return as_float(sign | ((b << 13) + 0x38000000u));
}
static inline ushort to_bfloat16(float x) {
	uint b = as_uint(x);
	return x != x ? (ushort)0x7fc0 : (ushort)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}
static inline float from_bfloat16(ushort h) { return as_float((uint)h << 16); }

static inline char quantize_(float x, float scale) {
	if (!(scale >= 0x1p-126f)) return 0;
	float q = x * (1.0f / scale);
	if (q != q) return 0;
	float a = abs_(q) < 127.0f ? abs_(q) : 127.0f;
	int n = (int)a + (a - (float)(int)a >= 0.5f); // the difference is exact
	return (char)(q < 0.0f ? -n : n);
}

static inline float adam_m_(float m, float g, float scale, float beta) { return beta * m + (1.0f - beta) * (g * scale); }

static inline float adam_v_(float v, float g, float scale, float beta) {
	float s = g * scale;
	return beta * v + (1.0f - beta) * (s * s);
}

static inline float adam_p_(float p, float m, float v, float lr, float c1, float c2, float eps, float decay) {
	float step = (m * c1) / (sqrt(v * c2) + eps);
	return p - lr * (step + decay * p);
}
