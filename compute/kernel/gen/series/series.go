// Package series makes the constants of elementary functions from their series, with more digits than float64 has.
package series

import (
	"fmt"
	"io"
	"math"
	"math/big"
)

const precision = 1600 // bits: 2/pi needs 1216, the alternating series of erf 200

func number(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

func add(x, y *big.Float) *big.Float { return number(0).Add(x, y) }
func sub(x, y *big.Float) *big.Float { return number(0).Sub(x, y) }
func mul(x, y *big.Float) *big.Float { return number(0).Mul(x, y) }
func quo(x, y *big.Float) *big.Float { return number(0).Quo(x, y) }

// pi is 16 atan(1/5) - 4 atan(1/239) (Machin).
func pi() *big.Float {
	atanInverse := func(n float64) *big.Float {
		sum, power := number(0), quo(number(1), number(n))
		for k := 0; k < precision; k++ {
			term := quo(power, number(float64(2*k+1)))
			if k%2 == 1 {
				term.Neg(term)
			}
			sum = add(sum, term)
			power = quo(power, number(n*n))
		}
		return sum
	}
	return sub(mul(number(16), atanInverse(5)), mul(number(4), atanInverse(239)))
}

// erfOverX is erf(x)/x, by its Taylor series; x < 5.
func erfOverX(x *big.Float) *big.Float {
	minusSquare := mul(number(-1), mul(x, x))
	sum, power := number(0), number(1)
	for n := 0; n < 300; n++ {
		sum = add(sum, quo(power, number(float64(2*n+1))))
		power = quo(mul(power, minusSquare), number(float64(n+1)))
	}
	return mul(sum, quo(number(2), number(0).Sqrt(pi())))
}

// interpolate returns the coefficients, lowest first, of the polynomial of degree n-1 in t that equals f(middle+t) at
// the n Chebyshev points of |t| <= radius, rounded so that the points are the same on every port.
func interpolate(f func(*big.Float) *big.Float, middle, radius float64, n int) []*big.Float {
	point, value := make([]*big.Float, n), make([]*big.Float, n)
	for i := range point {
		point[i] = number(radius * math.Round(0x1p20*math.Cos(math.Pi*(float64(i)+0.5)/float64(n))) * 0x1p-20)
		value[i] = f(add(number(middle), point[i]))
	}
	return newton(point, value)
}

// newton returns the coefficients, lowest first, of the polynomial through the points. It writes over value.
func newton(point, value []*big.Float) []*big.Float {
	n := len(point)
	for level := 1; level < n; level++ { // divided differences
		for i := n - 1; i >= level; i-- {
			value[i] = quo(sub(value[i], value[i-1]), sub(point[i], point[i-level]))
		}
	}
	polynomial := []*big.Float{value[n-1]}
	for i := n - 2; i >= 0; i-- { // polynomial * (t - point[i]) + value[i]
		next := make([]*big.Float, len(polynomial)+1)
		for j := range next {
			next[j] = number(0)
			if j > 0 {
				next[j] = add(next[j], polynomial[j-1])
			}
			if j < len(polynomial) {
				next[j] = sub(next[j], mul(point[i], polynomial[j]))
			}
		}
		next[0] = add(next[0], value[i])
		polynomial = next
	}
	return polynomial
}

// Tables writes the tables of package detmath.
func Tables(w io.Writer) {
	fmt.Fprintf(w, "package detmath\n\n")
	fmt.Fprintf(w, "// erfTable[i] is the polynomial of degree 9 in t, lowest power first, that interpolates erf(x)/x "+
		"with\n")
	fmt.Fprintf(w, "// x = i/2 + 1/4 + t at the Chebyshev points of |t| <= 1/4.\n")
	fmt.Fprintf(w, "var erfTable = [8][10]float64{\n")
	for i := range 8 {
		fmt.Fprintf(w, "{\n")
		for _, c := range interpolate(erfOverX, float64(i)/2+0.25, 0.25, 10) {
			rounded, _ := c.Float64()
			fmt.Fprintf(w, "%x,\n", rounded)
		}
		fmt.Fprintf(w, "},\n")
	}
	fmt.Fprintf(w, "}\n\n// twoOfPiBits is 64 zero bits and the first 1216 bits of 2/pi after the binary point.\n")
	fmt.Fprintf(w, "var twoOfPiBits = [20]uint64{\n0,\n")
	rest := quo(number(2), pi())
	for range 19 {
		rest = mul(rest, number(0x1p64))
		word, _ := rest.Uint64()
		fmt.Fprintf(w, "%#016x,\n", word)
		rest = sub(rest, number(0).SetUint64(word))
	}
	fmt.Fprintf(w, "}\n")
}
