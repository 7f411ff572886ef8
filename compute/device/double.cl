// The elementary functions of version 1 of the numerics, to the last bit those of package detmath, and the activations.

#define LOG2E 0x1.71547652b82fep+00
#define LN2 0x1.62e42fefa39efp-01
#define LN2_HI 0x1.62e42feep-01
#define LN2_LO 0x1.a39ef35793c76p-33
#define ROUND 0x1.8p52

static inline double pow2_(int n) { return as_double((ulong)(n + 1023) << 52); }

static inline double expm1_(double x, double *scale) {
	double n = (x * LOG2E + ROUND) - ROUND;
	double r = x - n * LN2, r2 = r * r, r4 = r2 * r2;
	double q0 = 1.0 + r * (1.0 / 2), q1 = 1.0 / 6 + r * (1.0 / 24), q2 = 1.0 / 120 + r * (1.0 / 720);
	double q3 = 1.0 / 5040 + r * (1.0 / 40320), q4 = 1.0 / 362880 + r * (1.0 / 3628800);
	double lo = q0 + r2 * q1, hi = (q2 + r2 * q3) + r4 * q4;
	*scale = pow2_((int)n);
	return r * (lo + r4 * hi);
}

static inline float exp_(float x) {
	if (!(x < 100.0f && x > -110.0f)) return x != x ? NAN_ : x > 0.0f ? INF_ : 0.0f;
	double scale, y = expm1_((double)x, &scale);
	return (float)(scale * y + scale);
}

static inline float tanh_(float x) {
	uint sign = as_uint(x) & SIGN_;
	float a = abs_(x);
	if (!(a < 10.0f)) return a != a ? NAN_ : as_float(sign | 0x3f800000u);
	double scale, y = expm1_(2.0 * (double)a, &scale), u = scale * y + (scale - 1.0);
	return as_float(sign | as_uint((float)(u / (u + 2.0))));
}

static inline float logistic_(float x) {
	if (!(x < 110.0f && x > -110.0f)) return x != x ? NAN_ : x > 0.0f ? 1.0f : 0.0f;
	double scale, y = expm1_(-(double)x, &scale);
	return (float)(1.0 / (1.0 + (scale * y + scale)));
}

#define SQRT_HALF 0x3fe6a09e667f3bcdul

static inline double split_log_(double x, double *s) {
	ulong u = as_ulong(x) + (0x3ff0000000000000ul - SQRT_HALF);
	double f = as_double((u & 0xffffffffffffful) + SQRT_HALF) - 1.0;
	*s = f / (2.0 + f);
	return (double)((int)(u >> 52) - 1023);
}

static inline float log_(float x) {
	if (!(x > 0.0f && x <= FLT_MAX)) return x == 0.0f ? as_float(0xff800000u) : x > 0.0f ? x : NAN_;
	double s, n = split_log_((double)x, &s), z = s * s, z2 = z * z;
	double q0 = 2.0 + z * (2.0 / 3), q1 = 2.0 / 5 + z * (2.0 / 7), q2 = 2.0 / 9 + z * (2.0 / 11);
	double q3 = 2.0 / 13 + z * (2.0 / 15), q = q0 + z2 * (q1 + z2 * (q2 + z2 * q3));
	return (float)(n * LN2 + s * q);
}

static inline float rsqrt_(float x) { return canonical_((float)(1.0 / sqrt((double)x))); }

__constant double erf_table[8][10] = {
	{
		0x1.1af54e232c8bep+00,
		-0x1.73070406ab03cp-03,
		-0x1.57664ff41e0fp-02,
		0x1.acf0ba3edede8p-04,
		0x1.6cb1553639bebp-04,
		-0x1.265cb414b242fp-05,
		-0x1.2d641326f8e7dp-06,
		0x1.24b70500779bfp-07,
		0x1.8664df31f585p-09,
		-0x1.bf7ef1d9e64b4p-10,
	},
	{
		0x1.e57b7477c3d2ep-01,
		-0x1.a0cdd9ab35b6ep-02,
		-0x1.9a7d8e17a0692p-04,
		0x1.5acfc2c083c09p-03,
		-0x1.9783a81523ac8p-06,
		-0x1.35e007b12fa8fp-05,
		0x1.de68b89f65855p-07,
		0x1.4eadf4e407ee8p-08,
		-0x1.dced89ff38fb3p-09,
		-0x1.4627c74cf4b7bp-12,
	},
	{
		0x1.7a0517ad5595dp-01,
		-0x1.9b12df9ca0091p-02,
		0x1.5aa53911e1007p-04,
		0x1.0faa3bae5e5a9p-04,
		-0x1.db07cee6f1cdp-05,
		0x1.1b4601ad726e6p-07,
		0x1.4bd475ff1b368p-07,
		-0x1.54ae1dfc7e5d4p-08,
		-0x1.bf11b1a558869p-12,
		0x1.07093bea9a025p-10,
	},
	{
		0x1.20ac0448e2823p-01,
		-0x1.2b07a60692d55p-02,
		0x1.d3549a4cabad1p-04,
		-0x1.c0361d8ac04bfp-07,
		-0x1.424961e6dcfecp-06,
		0x1.ec5dabaf1613cp-07,
		-0x1.c5f116ea3be9fp-09,
		-0x1.84c79804e959ap-10,
		0x1.4601d11a41bfbp-10,
		-0x1.a41b520e696cep-13,
	},
	{
		0x1.c672068e658e5p-02,
		-0x1.8d734c1fef27p-03,
		0x1.4408c71605769p-04,
		-0x1.a1de1a04ae6abp-06,
		0x1.7610c3e7cc2d8p-09,
		0x1.c69aad11630fdp-09,
		-0x1.7350ddb549f3bp-09,
		0x1.f7c29f8705b8bp-11,
		0x1.d8c4d08f18a21p-16,
		-0x1.6916552c1a2ffp-13,
	},
	{
		0x1.74537fc603e11p-02,
		-0x1.0e5896d12ad35p-03,
		0x1.846d86b5725eap-05,
		-0x1.0a0c0d4e2c1eep-06,
		0x1.35552a44e9cp-08,
		-0x1.767b687683cffp-11,
		-0x1.67a9c21fb3794p-12,
		0x1.792c355fbcaabp-12,
		-0x1.537880ccd1985p-13,
		0x1.0d184d341849p-15,
	},
	{
		0x1.3b13586218811p-02,
		-0x1.83bf9f6f5543bp-04,
		0x1.dcc02f5ff45dfp-06,
		-0x1.23692b41d3783p-07,
		0x1.5b1a1e486817ep-09,
		-0x1.7894bce161406p-11,
		0x1.2589f58858bd4p-13,
		0x1.3635f488d92c3p-17,
		-0x1.e46a0fb83c669p-16,
		0x1.187800532edaep-16,
	},
	{
		0x1.11110f080c525p-02,
		-0x1.234526458093fp-04,
		0x1.36ac7664d729cp-06,
		-0x1.4b3ef89fc1ba9p-08,
		0x1.605c864a6cbf1p-10,
		-0x1.72b71a7c9efc7p-12,
		0x1.75e8b6e527c84p-14,
		-0x1.460d1a1098e5fp-16,
		0x1.14749398c5bdbp-19,
		0x1.2a7417ae388b8p-20,
	},
};

static inline float erf_(float x) {
	uint sign = as_uint(x) & SIGN_;
	float a = abs_(x);
	if (!(a < 4.0f)) return a != a ? NAN_ : as_float(sign | 0x3f800000u);
	double d = (double)a;
	int i = (int)(a * 2.0f);
	__constant double *c = erf_table[i & 7];
	double t = d - ((double)i * 0.5 + 0.25), t2 = t * t, t4 = t2 * t2;
	double q0 = c[0] + t * c[1], q1 = c[2] + t * c[3], q2 = c[4] + t * c[5], q3 = c[6] + t * c[7], q4 = c[8] + t * c[9];
	double lo = q0 + t2 * q1, hi = (q2 + t2 * q3) + t4 * q4;
	return as_float(sign | as_uint((float)(d * (lo + t4 * hi))));
}

__constant double log_series[10] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7,
	2.0 / 5, 2.0 / 3};
__constant double sin_series[8] = {1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0,
	-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6};
__constant double cos_series[8] = {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600, -1.0 / 3628800,
	1.0 / 40320, -1.0 / 720, 1.0 / 24, 0.0};

static inline double horner_(double x, __constant double *coefficients, int n) {
	double p = 0.0;
	for (int i = 0; i < n; i++) p = coefficients[i] + x * p;
	return p;
}

static inline double log64_(double x) { // of normal numbers that are positive and finite, and of 0 and infinity
	if (!(x > 0.0 && x <= DBL_MAX)) return x == 0.0 ? -(double)INFINITY : x;
	double s, n = split_log_(x, &s), z = s * s;
	double tail = (s * z) * horner_(z, log_series, 10) + n * LN2_LO;
	return n * LN2_HI + (2.0 * s + tail);
}

static inline int integer_(float y) { return trunc((double)y) == (double)y; }

static inline float pow_(float x, float y) {
	double a = (double)abs_(x);
	if (y == 0.0f || x == 1.0f) return 1.0f;
	if (x != x || y != y || x < 0.0f && a <= (double)FLT_MAX && !integer_(y)) return NAN_;
	double t = a == 1.0 ? 0.0 : (double)y * log64_(a);
	float r = 0.0f;
	if (t >= 100.0) {
		r = INF_;
	} else if (t > -110.0) {
		double scale, e = expm1_(t, &scale);
		r = (float)(scale * e + scale);
	}
	return (as_uint(x) & SIGN_) && integer_(y) && !integer_(y / 2.0f) ? neg_(r) : r;
}

__constant ulong two_of_pi[20] = {
	0ul,
	0xa2f9836e4e441529ul,
	0xfc2757d1f534ddc0ul,
	0xdb6295993c439041ul,
	0xfe5163abdebbc561ul,
	0xb7246e3a424dd2e0ul,
	0x06492eea09d1921cul,
	0xfe1deb1cb129a73eul,
	0xe88235f52ebb4484ul,
	0xe99c7026b45f7e41ul,
	0x3991d639835339f4ul,
	0x9c845f8bbdf9283bul,
	0x1ff897ffde05980ful,
	0xef2f118b5a0a6d1ful,
	0x6d367ecf27cb09b7ul,
	0x4f463f669e5fea2dul,
	0x7527bac7ebe5f17bul,
	0x3d0739f78a5292eaul,
	0x6bfb5fb11f8d5d08ul,
	0x56033046fc7b6babul,
};

static inline ulong mul_two_of_pi_(double x, double *f) {
	ulong u = as_ulong(x), mantissa = (u & 0xffffffffffffful) | 1ul << 52;
	uint skip = (uint)((int)(u >> 52) - 1075 - 2 + 64), shift = skip % 64;
	__constant ulong *w = two_of_pi + skip / 64;
	// A shift by 64 gives 0 here, and nothing that is defined in C.
	ulong w0 = w[0] << shift | (shift ? w[1] >> (64 - shift) : 0), w1 = w[1] << shift | (shift ? w[2] >> (64 - shift) : 0);
	ulong w2 = w[2] << shift | (shift ? w[3] >> (64 - shift) : 0);
	ulong h0 = mul_hi(mantissa, w2), l0 = mantissa * w2, h1 = mul_hi(mantissa, w1), l1 = mantissa * w1;
	ulong mid = l1 + h0, top = mantissa * w0 + h1 + (mid < l1 ? 1 : 0);
	ulong n = top >> 62, hi = top << 2 | mid >> 62, lo = mid << 2 | l0 >> 62;
	int negative = hi >> 63 != 0;
	if (negative) {
		n++;
		hi = ~hi;
		lo = ~lo;
	}
	uint zeros = (uint)clz(hi);
	double g = (double)((hi << zeros | (zeros ? lo >> (64 - zeros) : 0)) >> 11) * pow2_(-53 - (int)zeros);
	*f = negative ? -g : g;
	return n;
}

static inline ulong quadrant_(double x, double *r) { // of finite x >= 0
	if (x < 0x1p20) {
		double n = (x * 0x1.45f306dc9c883p-01 + ROUND) - ROUND;
		*r = ((x - n * 0x1.921fb544p+00) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
		return (ulong)n;
	}
	double f;
	ulong q = mul_two_of_pi_(x, &f);
	*r = f * (0x1.921fb54442d18p+00);
	return q;
}

static inline double sin_cos_(ulong q, double r) {
	double z = r * r, y;
	if (q & 1) y = 1.0 + ((z * z) * horner_(z, cos_series, 7) - 0.5 * z);
	else y = r + (r * z) * horner_(z, sin_series, 8);
	return q & 2 ? -y : y;
}

static inline float sin_(float x) {
	if (!(abs_(x) <= FLT_MAX)) return NAN_;
	double r;
	ulong q = quadrant_((double)abs_(x), &r);
	double y = sin_cos_(q, r);
	return (float)(as_uint(x) & SIGN_ ? -y : y);
}

static inline float cos_(float x) {
	if (!(abs_(x) <= FLT_MAX)) return NAN_;
	double r;
	ulong q = quadrant_((double)abs_(x), &r);
	return (float)sin_cos_(q + 1, r);
}

#define GELU_LINEAR 0.7978845608028654f
#define GELU_CUBIC ((float)(0.044715 * 0.7978845608028654))
#define GELU_RISE ((float)(3 * (0.044715 * 0.7978845608028654)))

static inline float gelu_tanh_(float x, float squares) { return tanh_(x * (squares * GELU_CUBIC + GELU_LINEAR)); }

static inline float gelu_(float x) {
	float t = gelu_tanh_(x, x * x), h = x * 0.5f;
	return h + h * t;
}

static inline float gelu_grad_(float x, float d) {
	float squares = x * x, t = gelu_tanh_(x, squares), inner = squares * GELU_RISE + GELU_LINEAR, h = x * 0.5f;
	return d * ((0.5f + 0.5f * t) + (h * (1.0f - t * t)) * inner);
}

static inline float silu_(float x) { return x * logistic_(x); }

static inline float silu_grad_(float x, float d) {
	float s = logistic_(x);
	return d * (s * (1.0f + x * (1.0f - s)));
}
