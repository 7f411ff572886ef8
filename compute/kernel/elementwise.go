package kernel

import (
	"math"
)

// Number is a Go type of elements that operators calculate with.
type Number interface {
	float32 | Integer
}

// Integer is a Go type of elements that are whole numbers.
type Integer interface {
	int8 | int32 | int64 | uint8 | uint32
}

// The elementwise functions below take slices of the length of dst; dst may be one of the operands, but must not
// overlap one otherwise.

// Neg negates; a float32 has its sign bit flipped, an integer wraps around.
func Neg[T Number](dst, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = -x[i]
	}
}

// AbsFloat clears the sign bit.
func AbsFloat(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(math.Float32bits(x[i]) &^ (1 << 31))
	}
}

// AbsInt is the absolute value of integers; the smallest one stays as it is.
func AbsInt[T Number](dst, x []T) {
	x = x[:len(dst)]
	for i, v := range x {
		if v < 0 {
			v = -v
		}
		dst[i] = v
	}
}

// Sign is 1 above zero, -1 below, and x itself otherwise: zeros keep their sign and NaN stays NaN.
func Sign[T Number](dst, x []T) {
	x = x[:len(dst)]
	var one T = 1
	for i, v := range x {
		switch {
		case v > 0:
			v = one
		case v < 0:
			v = -one
		}
		dst[i] = v
	}
}

// Map applies a function of one element to every element.
func Map[D, S any](f func(S) D) func(dst []D, x []S) {
	return func(dst []D, x []S) {
		x = x[:len(dst)]
		for i := range dst {
			dst[i] = f(x[i])
		}
	}
}

// SqrtTo takes the square root of every element, correctly rounded: -0 for -0, NaN for x < 0.
func SqrtTo(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = float32(math.Sqrt(float64(x[i])))
	}
}

// Floor rounds down to an integer.
func Floor(x float32) float32 { return float32(math.Floor(float64(x))) }

// Ceil rounds up to an integer.
func Ceil(x float32) float32 { return float32(math.Ceil(float64(x))) }

// Round rounds to the nearest integer, ties to even.
func Round(x float32) float32 { return float32(math.RoundToEven(float64(x))) }

// Add adds.
func Add[T Number](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// Sub subtracts y from x.
func Sub[T Number](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] - y[i]
	}
}

// Mul multiplies.
func Mul[T Number](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

// DivFloat divides x by y as IEEE-754 says.
func DivFloat(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] / y[i]
	}
}

// DivInt divides x by y, truncating toward zero. x/0 is 0; the smallest integer divided by -1 is itself.
func DivInt[T Integer](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		if d := y[i]; d != 0 {
			dst[i] = x[i] / d
		} else {
			dst[i] = 0
		}
	}
}

// Max is the larger of both: NaN if either is NaN, and +0 of zeros of different sign.
func Max[T Number](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = max(x[i], y[i])
	}
}

// Min is the smaller of both: NaN if either is NaN, and -0 of zeros of different sign.
func Min[T Number](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = min(x[i], y[i])
	}
}

// Not is the negation of booleans, bytes that are 0 or not.
func Not(dst, x []uint8) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = truth(x[i] == 0)
	}
}

// And is the conjunction of booleans.
func And(dst, x, y []uint8) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth(x[i] != 0 && y[i] != 0)
	}
}

// Or is the disjunction of booleans.
func Or(dst, x, y []uint8) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth(x[i]|y[i] != 0)
	}
}

func truth(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// Equal compares; dst holds 1 where it is true, else 0. Every comparison with NaN is false but NotEqual.
func Equal[T Number](dst []uint8, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth(x[i] == y[i])
	}
}

// NotEqual is the opposite of Equal.
func NotEqual[T Number](dst []uint8, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth(x[i] != y[i])
	}
}

// Less compares as Equal does.
func Less[T Number](dst []uint8, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth(x[i] < y[i])
	}
}

// LessEqual compares as Equal does.
func LessEqual[T Number](dst []uint8, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = truth(x[i] <= y[i])
	}
}

// Where is x where cond is not 0, else y.
func Where[T any](dst []T, cond []uint8, x, y []T) {
	cond, x, y = cond[:len(dst)], x[:len(dst)], y[:len(dst)]
	for i := range dst {
		v := y[i]
		if cond[i] != 0 {
			v = x[i]
		}
		dst[i] = v
	}
}
