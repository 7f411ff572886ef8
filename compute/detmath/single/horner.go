package single

// The functions of this file are polynomials with the given coefficients, the lowest power first, at x. Each operation
// is rounded, the highest power first (Horner).

func horner4(x float32, c *[4]float32) float32 {
	p := c[2] + float32(x*c[3])
	p = c[1] + float32(x*p)
	return c[0] + float32(x*p)
}

func horner5(x float32, c *[5]float32) float32 {
	p := c[3] + float32(x*c[4])
	p = c[2] + float32(x*p)
	p = c[1] + float32(x*p)
	return c[0] + float32(x*p)
}

func horner6(x float32, c *[6]float32) float32 {
	p := c[4] + float32(x*c[5])
	p = c[3] + float32(x*p)
	p = c[2] + float32(x*p)
	p = c[1] + float32(x*p)
	return c[0] + float32(x*p)
}

func horner7(x float32, c *[7]float32) float32 {
	p := c[5] + float32(x*c[6])
	p = c[4] + float32(x*p)
	p = c[3] + float32(x*p)
	p = c[2] + float32(x*p)
	p = c[1] + float32(x*p)
	return c[0] + float32(x*p)
}

func horner8(x float32, c *[8]float32) float32 {
	p := c[6] + float32(x*c[7])
	p = c[5] + float32(x*p)
	p = c[4] + float32(x*p)
	p = c[3] + float32(x*p)
	p = c[2] + float32(x*p)
	p = c[1] + float32(x*p)
	return c[0] + float32(x*p)
}

func horner9(x float32, c *[9]float32) float32 {
	p := c[7] + float32(x*c[8])
	p = c[6] + float32(x*p)
	p = c[5] + float32(x*p)
	p = c[4] + float32(x*p)
	p = c[3] + float32(x*p)
	p = c[2] + float32(x*p)
	p = c[1] + float32(x*p)
	return c[0] + float32(x*p)
}
