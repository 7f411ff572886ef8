package kernel

import "math"

// AdamM is the next first moment: beta*m + (1-beta)*(g*scale), every operation rounded.
func AdamM(dst, m, g []float32, scale, beta float32) {
	m, g = m[:len(dst)], g[:len(dst)]
	rest := 1 - beta
	for i := range dst {
		dst[i] = float32(beta*m[i]) + float32(rest*float32(g[i]*scale))
	}
}

// AdamV is the next second moment: beta*v + (1-beta)*(g*scale)^2, every operation rounded.
func AdamV(dst, v, g []float32, scale, beta float32) {
	v, g = v[:len(dst)], g[:len(dst)]
	rest := 1 - beta
	for i := range dst {
		s := float32(g[i] * scale)
		dst[i] = float32(beta*v[i]) + float32(rest*float32(s*s))
	}
}

// AdamP is the next parameter with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight Decay
// Regularization", algorithm 2, with the decay scaled by the learning rate): p - lr*((m*c1)/(sqrt(v*c2)+eps) +
// decay*p), every operation rounded. c1 and c2 correct the bias of the moments.
func AdamP(dst, p, m, v []float32, lr, c1, c2, eps, decay float32) {
	p, m, v = p[:len(dst)], m[:len(dst)], v[:len(dst)]
	for i := range dst {
		root := float32(math.Sqrt(float64(float32(v[i] * c2))))
		step := float32(m[i]*c1) / (root + eps)
		dst[i] = p[i] - float32(lr*(step+float32(decay*p[i])))
	}
}
