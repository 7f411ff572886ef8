// The elementary functions of version 2 of the numerics, to the last bit those of package single, and the activations: no
// number of 64 bits, no fused operation.

#define EXP_LOW -104.0f
#define EXP_HIGH 89.0f
#define LN2_HIGH 0x1.62e4p-01f
#define LN2_LOW 0x1.7f7d1cp-20f
#define ROUND 0x1.8p23f

__constant float exp_rest[5] = {0x1p-01f, 0x1.5554dcp-03f, 0x1.555518p-05f, 0x1.120cp-07f, 0x1.6d119ap-10f};
__constant float log_rest[9] = {0x1.555554p-02f, -0x1.fffffcp-03f, 0x1.999d5cp-03f, -0x1.555b44p-03f,
	0x1.23d1f8p-03f, -0x1.fcf5b6p-04f, 0x1.dea674p-04f, -0x1.d63002p-04f, 0x1.1d7b2ap-04f};
__constant float tanh_rest[7] = {-0x1.555554p-02f, 0x1.1110b2p-03f, -0x1.b9fd82p-05f, 0x1.648194p-06f,
	-0x1.14eb0ep-07f, 0x1.69a4aep-09f, -0x1.10d08ep-11f};
__constant float sin_rest[4] = {-0x1.555556p-03f, 0x1.11110ep-07f, -0x1.a013a6p-13f, 0x1.6dbdc6p-19f};
__constant float cos_rest[4] = {0x1.555556p-05f, -0x1.6c16cp-10f, 0x1.a015c4p-16f, -0x1.252422p-22f};
__constant float atanh_rest[4] = {0x1.99999ap-03f, 0x1.24928ep-03f, 0x1.c6c0d8p-04f, 0x1.8797f2p-04f};
__constant float erf_near[6] = {0x1.06eba8p-03f, -0x1.812746p-02f, 0x1.ce2ef2p-04f, -0x1.b8203p-06f,
	0x1.54d076p-08f, -0x1.936a4ap-11f};

static inline float horner_(float x, __constant float *c, int n) {
	float p = c[n - 1];
	for (int i = n - 2; i >= 0; i--) p = c[i] + x * p;
	return p;
}

static inline float pow2_(int n) { return as_float((uint)(n + 127) << 23); }

static inline float reduced_(float x, float *n) {
	*n = (x * 0x1.715476p+00f + ROUND) - ROUND;
	float r = (x - *n * LN2_HIGH) - *n * LN2_LOW, q = (r * r) * horner_(r, exp_rest, 5);
	float t = 1.0f + r, d = (1.0f - t) + r;
	return t + (d + q);
}

static inline float scaled_(float y, float n) {
	int half_ = (int)n >> 1;
	return (y * pow2_(half_)) * pow2_((int)n - half_);
}

static inline float exp_(float x) {
	if (!(x <= EXP_HIGH && x >= EXP_LOW)) return x != x ? NAN_ : x > 0.0f ? INF_ : 0.0f;
	float n, y = reduced_(x, &n);
	return scaled_(y, n);
}

static inline float logistic_(float x) {
	if (x != x) return NAN_;
	float e = exp_(as_float(as_uint(x) | SIGN_)), q = e / (1.0f + e);
	return x < 0.0f ? q : 1.0f - q;
}

static inline float tanh_(float x) {
	float a = abs_(x), t = 1.0f;
	if (a != a) return NAN_;
	if (a < 0.9f) {
		float z = a * a;
		t = a + (a * z) * horner_(z, tanh_rest, 7);
	} else if (a < 10.0f) {
		t = 1.0f - 2.0f / (exp_(a + a) + 1.0f);
	}
	return as_float(as_uint(x) & SIGN_ | as_uint(t));
}

#define SQRT_HALF 0x3f3504f3u

static inline float split_(float x, float *f) {
	float n = 0.0f;
	if (x < 0x1p-126f) {
		x *= 0x1p23f;
		n = -23.0f;
	}
	uint u = as_uint(x) + (0x3f800000u - SQRT_HALF);
	*f = as_float((u & 0x7fffffu) + SQRT_HALF) - 1.0f;
	return n + (float)((int)(u >> 23) - 127);
}

static inline float log_(float x) {
	if (!(x > 0.0f && x <= FLT_MAX)) return x == 0.0f ? as_float(0xff800000u) : x > 0.0f ? x : NAN_;
	float f, n = split_(x, &f), z = f * f;
	float q = ((f * z) * horner_(f, log_rest, 9) - 0.5f * z) + n * LN2_LOW;
	float a = n * LN2_HIGH, t = a + f, d = (a - t) + f;
	return t + (d + q);
}

static inline float rsqrt_(float x) {
	float a = x, back = 1.0f;
	if (x > 0x1p64f) {
		a = x * 0x1p-64f;
		back = 0x1p-32f;
	} else if (x < 0x1p-64f) {
		a = x * 0x1p64f;
		back = 0x1p32f;
	}
	if (x == 0.0f) return as_float(as_uint(x) & SIGN_ | 0x7f800000u);
	return x > 0.0f ? sqrt(1.0f / a) * back : NAN_;
}

// The middle of an interval in two parts, then the coefficients of the slope.
__constant float erf_table[7][10] = {
	{0x1.6c1c98p-01f, -0x1.4c5e34p-26f, 0x1.492e42p-01f, -0x1.edc564p-02f, 0x1.b6e75ap-06f,
		0x1.349b6p-03f, -0x1.b4022cp-05f, -0x1.b84b0cp-06f, 0x1.260656p-06f, 0x1.3099c8p-09f},
	{0x1.d8865ep-01f, -0x1.9d508p-27f, 0x1.e4653p-03f, -0x1.2ebf3ep-02f, 0x1.571d08p-03f,
		-0x1.93a8dap-08f, -0x1.828a6cp-05f, 0x1.5cefe2p-06f, 0x1.e9319p-09f, -0x1.6ef09ap-08f},
	{0x1.f92d08p-01f, -0x1.00e552p-26f, 0x1.b0553p-05f, -0x1.7a4a8ap-04f, 0x1.7148d2p-04f,
		-0x1.8a0db4p-05f, 0x1.b1d928p-08f, 0x1.25c54ap-07f, -0x1.85bef6p-08f, 0x1.622036p-11f},
	{0x1.ff4048p-01f, -0x1.3f9ccap-26f, 0x1.d4143ap-08f, -0x1.074b6p-06f, 0x1.63ef4ap-06f,
		-0x1.38a984p-06f, 0x1.5d49ecp-07f, -0x1.7cabc2p-09f, -0x1.775a7ep-11f, 0x1.059286p-10f},
	{0x1.fff2dp-01f, -0x1.3eeb0ap-27f, 0x1.3360cep-11f, -0x1.a6a51ap-10f, 0x1.69cf2p-09f,
		-0x1.ab0c0ap-09f, 0x1.69418cp-09f, -0x1.b28756p-10f, 0x1.4df4aap-11f, -0x1.588fp-14f},
	{0x1.ffff7p-01f, -0x1.82606ap-27f, 0x1.e9b5e6p-16f, -0x1.8de3cep-14f, 0x1.9aa56p-13f,
		-0x1.2c7d68p-12f, 0x1.48e8c4p-12f, -0x1.1451ap-12f, 0x1.6b39bep-13f, -0x1.579716p-14f},
	{0x1.fffffcp-01f, 0x1.78b8f2p-28f, 0x1.d93704p-21f, -0x1.bba3aap-19f, 0x1.0b6dbcp-17f,
		-0x1.d070b8p-17f, 0x1.33b4cep-16f, -0x1.4320e8p-16f, 0x1.1e0126p-16f, -0x1.805a0ep-17f},
};

static inline float erf_(float x) {
	uint sign = as_uint(x) & SIGN_;
	float a = abs_(x), y = 1.0f;
	if (a != a) return NAN_;
	if (a < 0.5f) {
		y = a + a * horner_(a * a, erf_near, 6);
	} else if (a < 4.0f) {
		int i = (int)(a * 2.0f);
		__constant float *c = erf_table[i - 1];
		float t = a - ((float)i * 0.5f + 0.25f);
		y = c[0] + (t * horner_(t, c + 2, 8) + c[1]);
	}
	return as_float(sign | as_uint(y));
}

static inline void sum_(float x, float y, float *high, float *low) {
	float h = x + y;
	*low = (x - h) + y;
	*high = h;
}

static inline float high_(float x) { return as_float(as_uint(x) & ~0xfffu); }

static inline void product_(float x, float y, float *high, float *low) {
	float h = x * y, xh = high_(x), xl = x - xh, yh = high_(y), yl = y - yh;
	*low = (((xh * yh - h) + xh * yl) + xl * yh) + xl * yl;
	*high = h;
}

#define LOG2E_HIGH 0x1.715476p+00f
#define LOG2E_LOW 0x1.4ae0cp-26f
#define THIRD_HIGH 0x1.555556p-02f
#define THIRD_LOW -0x1.555556p-27f

static inline void log2_(float n, float f, float *high, float *low) {
	float b = 2.0f + f, brest = (2.0f - b) + f, s = f / b, p, e, z, zrest, t, trest, u, urest, rest, v, vrest, w, wrest;
	product_(s, b, &p, &e);
	float srest = (((f - p) - e) - s * brest) / b;
	product_(s, s, &z, &zrest);
	zrest += 2.0f * (s * srest);
	product_(z, THIRD_HIGH, &t, &trest);
	trest += zrest * THIRD_HIGH + z * THIRD_LOW;
	sum_(t, trest + (z * z) * horner_(z, atanh_rest, 4), &t, &trest);
	product_(s, t, &u, &urest);
	urest += (s * trest + srest * t) + srest;
	sum_(s, u, &u, &rest);
	urest += rest;
	product_(u, 2.0f * LOG2E_HIGH, &v, &vrest);
	vrest += urest * (2.0f * LOG2E_HIGH) + u * (2.0f * LOG2E_LOW);
	sum_(v, vrest, high, low);
	if (n == 0.0f) return;
	sum_(n, *high, &w, &wrest);
	sum_(w, wrest + *low, high, low);
}

static inline float power_(float a, float y) {
	if (a == 1.0f) return 1.0f;
	if (a == 0.0f || a > FLT_MAX) return (a == 0.0f) == (y < 0.0f) ? INF_ : 0.0f;
	y = y > 0x1p40f ? 0x1p40f : y < -0x1p40f ? -0x1p40f : y;
	float f, n = split_(a, &f), high, low, p, e, h, l;
	log2_(n, f, &high, &low);
	product_(high, y, &p, &e);
	e += low * y;
	if (p >= 130.0f) return INF_;
	if (p <= -152.0f) return 0.0f;
	float k = (p + ROUND) - ROUND, g = p - k;
	product_(g, 0x1.62e43p-01f, &h, &l);
	l += g * -0x1.05c61p-29f + e * 0x1.62e43p-01f;
	float t = 1.0f + h, q = (h * h) * horner_(h, exp_rest, 5);
	q += l * (t + q);
	float d = (1.0f - t) + h;
	return scaled_(t + (d + q), k);
}

static inline int integer_(float y) { return !(y < 0x1p23f && y > -0x1p23f) || (float)(int)y == y; }

static inline float pow_(float x, float y) {
	float a = abs_(x);
	if (y == 0.0f || x == 1.0f) return 1.0f;
	if (x != x || y != y || x < 0.0f && a <= FLT_MAX && !integer_(y)) return NAN_;
	float r = power_(a, y);
	return (as_uint(x) & SIGN_) && integer_(y) && !integer_(y * 0.5f) ? neg_(r) : r;
}

__constant uint two_of_pi[8] = {0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};

static inline uint quadrant_(float x, float *high, float *low) { // of a finite x
	uint u = as_uint(x) & ~SIGN_;
	if (u < 0x3f490fdbu) {
		*high = as_float(u);
		*low = 0.0f;
		return 0;
	}
	uint m = u & 0x7fffffu | 0x800000u, skip = (u >> 23) - 150 + 30, shift = skip % 32;
	__constant uint *w = two_of_pi + skip / 32;
	// A shift by 32 gives 0 here, and nothing that is defined in C.
	uint w0 = w[0] << shift | (shift ? w[1] >> (32 - shift) : 0), w1 = w[1] << shift | (shift ? w[2] >> (32 - shift) : 0);
	uint w2 = w[2] << shift | (shift ? w[3] >> (32 - shift) : 0);
	uint l2 = m * w2, h2 = mul_hi(m, w2), l1 = m * w1, h1 = mul_hi(m, w1);
	uint middle = l1 + h2, top = m * w0 + h1 + (middle < l1 ? 1 : 0);
	uint q = top >> 30, f = top << 2 | middle >> 30, g = middle << 2 | l2 >> 30;
	int negative = f >> 31 != 0;
	if (negative) {
		q++;
		f = ~f;
		g = ~g;
	}
	uint zeros = (uint)clz(f), product = mul_hi(f << zeros | (zeros ? g >> (32 - zeros) : 0), 0xc90fdaa2u);
	float scale = pow2_(-31 - (int)zeros);
	if (negative) scale = -scale;
	*high = (float)(product & ~0xffu) * scale;
	*low = (float)(product & 0xffu) * scale;
	return q;
}

static inline float sin_cos_(uint q, float high, float low) {
	float z = high * high, y;
	if (q & 1) {
		float h = 0.5f * z, t = 1.0f - h, d = (1.0f - t) - h;
		y = t + (d + ((z * z) * horner_(z, cos_rest, 4) - high * low));
	} else {
		y = high + ((high * z) * horner_(z, sin_rest, 4) + (low - (0.5f * z) * low));
	}
	return q & 2 ? -y : y;
}

static inline float sin_(float x) {
	if (!(abs_(x) <= FLT_MAX)) return NAN_;
	float high, low;
	uint q = quadrant_(x, &high, &low);
	return as_float(as_uint(sin_cos_(q, high, low)) ^ as_uint(x) & SIGN_);
}

static inline float cos_(float x) {
	if (!(abs_(x) <= FLT_MAX)) return NAN_;
	float high, low;
	uint q = quadrant_(x, &high, &low);
	return sin_cos_(q + 1, high, low);
}

#define GELU_LINEAR as_float(0x3fcc422au)
#define GELU_CUBIC as_float(0x3d922279u)
#define GELU_RISE as_float(0x3e5b33b6u)

static inline float gelu_logistic_(float x, float squares) { return logistic_(x * (squares * GELU_CUBIC + GELU_LINEAR)); }

static inline float gelu_(float x) { return x * gelu_logistic_(x, x * x); }

static inline float gelu_grad_(float x, float d) {
	float squares = x * x, s = gelu_logistic_(x, squares);
	return d * (s * (1.0f + (x * (1.0f - s)) * (squares * GELU_RISE + GELU_LINEAR)));
}

static inline float silu_(float x) { return x * logistic_(x); }

static inline float silu_grad_(float x, float d) {
	float s = logistic_(x);
	return d * (s * (1.0f + x * (1.0f - s)));
}
