package kernel

// The methods of Path below give the bits of the functions of elementwise.go: whole vectors in assembly, the rest in Go.
// dst may be one of the operands, but must not overlap one otherwise. The zero Path is the active one.

// whole returns how many of n elements the vector loops take.
func (p Path) whole(n int) int {
	if p == 0 {
		p = Active()
	}
	if p == Portable {
		return 0
	}
	return n &^ 7
}

// Add is the function Add for float32.
func (p Path) Add(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	n := p.whole(len(dst))
	if n > 0 {
		addVector(&dst[0], &x[0], &y[0], n)
	}
	Add(dst[n:], x[n:], y[n:])
}

// Sub is the function Sub for float32.
func (p Path) Sub(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	n := p.whole(len(dst))
	if n > 0 {
		subVector(&dst[0], &x[0], &y[0], n)
	}
	Sub(dst[n:], x[n:], y[n:])
}

// Mul is the function Mul for float32.
func (p Path) Mul(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	n := p.whole(len(dst))
	if n > 0 {
		mulVector(&dst[0], &x[0], &y[0], n)
	}
	Mul(dst[n:], x[n:], y[n:])
}

// Div is the function DivFloat for float32.
func (p Path) Div(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	n := p.whole(len(dst))
	if n > 0 {
		divVector(&dst[0], &x[0], &y[0], n)
	}
	DivFloat(dst[n:], x[n:], y[n:])
}

// Max is the function Max for float32.
func (p Path) Max(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	n := p.whole(len(dst))
	if n > 0 {
		maxVector(&dst[0], &x[0], &y[0], n)
	}
	Max(dst[n:], x[n:], y[n:])
}

// Min is the function Min for float32.
func (p Path) Min(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	n := p.whole(len(dst))
	if n > 0 {
		minVector(&dst[0], &x[0], &y[0], n)
	}
	Min(dst[n:], x[n:], y[n:])
}
