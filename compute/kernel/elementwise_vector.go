package kernel

// The methods of Path below give the bits of the functions of elementwise.go and adam.go: whole vectors in assembly,
// the rest in Go. dst may be one of the operands, but must not overlap one otherwise. The zero Path is the active one.

// Vectors returns the path that p stands for, and how many of n elements its vector loops take.
func (p Path) Vectors(n int) (Path, int) {
	if p == 0 {
		p = Active()
	}
	if !p.Floats() {
		return p, 0
	}
	return p, n &^ 7
}

// Add is the function Add for float32.
func (p Path) Add(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		addVector(&dst[0], &x[0], &y[0], n, p)
	}
	Add(dst[n:], x[n:], y[n:])
}

// Sub is the function Sub for float32.
func (p Path) Sub(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		subVector(&dst[0], &x[0], &y[0], n, p)
	}
	Sub(dst[n:], x[n:], y[n:])
}

// Mul is the function Mul for float32.
func (p Path) Mul(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		mulVector(&dst[0], &x[0], &y[0], n, p)
	}
	Mul(dst[n:], x[n:], y[n:])
}

// Div is the function DivFloat for float32.
func (p Path) Div(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		divVector(&dst[0], &x[0], &y[0], n, p)
	}
	DivFloat(dst[n:], x[n:], y[n:])
}

// Max is the function Max for float32.
func (p Path) Max(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		maxVector(&dst[0], &x[0], &y[0], n, p)
	}
	Max(dst[n:], x[n:], y[n:])
}

// Min is the function Min for float32.
func (p Path) Min(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		minVector(&dst[0], &x[0], &y[0], n, p)
	}
	Min(dst[n:], x[n:], y[n:])
}

// Sqrt is the function SqrtTo.
func (p Path) Sqrt(dst, x []float32) {
	x = x[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		sqrtVector(&dst[0], &x[0], n, p)
	}
	SqrtTo(dst[n:], x[n:])
}

// AdamM is the function AdamM.
func (p Path) AdamM(dst, m, g []float32, scale, beta float32) {
	m, g = m[:len(dst)], g[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		adamMVector(&dst[0], &m[0], &g[0], n, scale, beta, 1-beta, p)
	}
	AdamM(dst[n:], m[n:], g[n:], scale, beta)
}

// AdamV is the function AdamV.
func (p Path) AdamV(dst, v, g []float32, scale, beta float32) {
	v, g = v[:len(dst)], g[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		adamVVector(&dst[0], &v[0], &g[0], n, scale, beta, 1-beta, p)
	}
	AdamV(dst[n:], v[n:], g[n:], scale, beta)
}

// AdamP is the function AdamP; par is what it calls p.
func (p Path) AdamP(dst, par, m, v []float32, lr, c1, c2, eps, decay float32) {
	par, m, v = par[:len(dst)], m[:len(dst)], v[:len(dst)]
	p, n := p.Vectors(len(dst))
	if n > 0 {
		adamPVector(&dst[0], &par[0], &m[0], &v[0], n, lr, c1, c2, eps, decay, p)
	}
	AdamP(dst[n:], par[n:], m[n:], v[n:], lr, c1, c2, eps, decay)
}
