package kernel

import "github.com/starling-network/starling/compute/detmath"

// ExpTo sets dst[i] = Exp(src[i]); dst and src are of one length and the same or disjoint memory. So are the others.
// Their vector loops are those of the active path.
func ExpTo(dst, src []float32) {
	dst = dst[:len(src)]
	p, i := Path(0).vectors(len(src))
	if i > 0 {
		expVector(&dst[0], &src[0], i, p)
	}
	for ; i < len(src); i++ {
		dst[i] = detmath.Exp(src[i])
	}
}

// TanhTo sets dst[i] = Tanh(src[i]).
func TanhTo(dst, src []float32) {
	dst = dst[:len(src)]
	p, i := Path(0).vectors(len(src))
	if i > 0 {
		tanhVector(&dst[0], &src[0], i, p)
	}
	for ; i < len(src); i++ {
		dst[i] = detmath.Tanh(src[i])
	}
}

// LogisticTo sets dst[i] = Logistic(src[i]).
func LogisticTo(dst, src []float32) {
	dst = dst[:len(src)]
	p, i := Path(0).vectors(len(src))
	if i > 0 {
		logisticVector(&dst[0], &src[0], i, p)
	}
	for ; i < len(src); i++ {
		dst[i] = detmath.Logistic(src[i])
	}
}

// LogTo sets dst[i] = Log(src[i]).
func LogTo(dst, src []float32) {
	dst = dst[:len(src)]
	p, i := Path(0).vectors(len(src))
	if i > 0 {
		logVector(&dst[0], &src[0], i, p)
	}
	for ; i < len(src); i++ {
		dst[i] = detmath.Log(src[i])
	}
}

// RsqrtTo sets dst[i] = Rsqrt(src[i]).
func RsqrtTo(dst, src []float32) {
	dst = dst[:len(src)]
	p, i := Path(0).vectors(len(src))
	if i > 0 {
		rsqrtVector(&dst[0], &src[0], i, p)
	}
	for ; i < len(src); i++ {
		dst[i] = detmath.Rsqrt(src[i])
	}
}

// ErfTo sets dst[i] = Erf(src[i]).
func ErfTo(dst, src []float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = detmath.Erf(x)
	}
}
