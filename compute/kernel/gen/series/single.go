package series

import (
	"fmt"
	"io"
	"math"
	"math/big"
)

// expOf is e^x for |x| < 32, by its Taylor series.
func expOf(x *big.Float) *big.Float {
	sum, term := number(0), number(1)
	for n := 1; n < 500; n++ {
		sum = add(sum, term)
		term = quo(mul(term, x), number(float64(n)))
	}
	return sum
}

// atanhOverX is atanh(s)/s as a function of z = s*s, |z| < 0.2, by its Taylor series.
func atanhOverX(z *big.Float) *big.Float {
	sum, power := number(0), number(1)
	for n := 0; n < 700; n++ {
		sum = add(sum, quo(power, number(float64(2*n+1))))
		power = mul(power, z)
	}
	return sum
}

// logOf is the natural logarithm of 1 + f for |f| < 0.5: 2 atanh(f/(2+f)).
func logOf(f *big.Float) *big.Float {
	s := quo(f, add(number(2), f))
	return mul(mul(number(2), s), atanhOverX(mul(s, s)))
}

// ln2Of is ln 2: -2 ln(1 - 1/2 + ...) would converge slowly, and 2 atanh(1/3) does not.
func ln2Of() *big.Float {
	third := quo(number(1), number(3))
	return mul(mul(number(2), third), atanhOverX(mul(third, third)))
}

// series is the sum of terms (-1)^n z^n / (2n+first)!, from n = 0 on: of sin(r)/r for first 1, of cos(r) for 0.
func series(z *big.Float, first int) *big.Float {
	sum, term := number(0), number(1)
	for n := 0; n < 300; n++ {
		sum = add(sum, term)
		k := float64(2*n + first)
		term = quo(mul(mul(term, z), number(-1)), mul(number(k+1), number(k+2)))
	}
	return sum
}

// fit returns the coefficients, lowest first and rounded to float32, of the polynomial of degree n-1 in x that equals f
// at the n Chebyshev points of [low, high], moved by 2^-40: f may be undefined at 0.
func fit(f func(*big.Float) *big.Float, low, high float64, n int) []float32 {
	point, value := make([]*big.Float, n), make([]*big.Float, n)
	for i := range point {
		at := math.Round(0x1p20*math.Cos(math.Pi*(float64(i)+0.5)/float64(n))) * 0x1p-20
		point[i] = number((low+high)/2 + (high-low)/2*at + 0x1p-40)
		value[i] = f(point[i])
	}
	var rounded []float32
	for _, c := range newton(point, value) {
		x, _ := c.Float32()
		rounded = append(rounded, x)
	}
	return rounded
}

// tanhRest is (tanh(a)-a)/a^3 as a function of z = a*a.
func tanhRest(z *big.Float) *big.Float {
	a := number(0).Sqrt(z)
	e := expOf(mul(number(2), a))
	t := quo(sub(e, number(1)), add(e, number(1)))
	return quo(sub(quo(t, a), number(1)), z)
}

// A polynomial of package single: what it approximates, and where.
type polynomial struct {
	name, comment string
	of            func(*big.Float) *big.Float
	low, high     float64
	terms         int
}

var polynomials = []polynomial{
	{"expRest", "(e^r - 1 - r) / r^2 for |r| <= 0.3470", func(r *big.Float) *big.Float {
		return quo(sub(sub(expOf(r), number(1)), r), mul(r, r))
	}, -0.347, 0.347, 5},
	{"logRest", "(ln(1+f) - f + f^2/2) / f^3 for sqrt(1/2)-1 <= f < sqrt(2)-1", func(f *big.Float) *big.Float {
		square := mul(f, f)
		return quo(add(sub(logOf(f), f), quo(square, number(2))), mul(square, f))
	}, -0.2929, 0.4143, 9},
	{"tanhRest", "(tanh(a) - a) / a^3 in z = a^2 for a < 0.9", tanhRest, 0, 0.81, 7},
	{"sinRest", "(sin(r) - r) / r^3 in z = r^2 for |r| <= pi/4", func(z *big.Float) *big.Float {
		return quo(sub(series(z, 1), number(1)), z)
	}, 0, 0.617, 4},
	{"cosRest", "(cos(r) - 1 + r^2/2) / r^4 in z = r^2 for |r| <= pi/4", func(z *big.Float) *big.Float {
		return quo(add(sub(series(z, 0), number(1)), quo(z, number(2))), mul(z, z))
	}, 0, 0.617, 4},
	{"atanhRest", "(atanh(s)/s - 1 - z/3) / z^2 in z = s^2 for |s| < 0.1716", func(z *big.Float) *big.Float {
		return quo(sub(sub(atanhOverX(z), number(1)), quo(z, number(3))), mul(z, z))
	}, 0, 0.02945, 4},
	{"erfNear", "erf(x)/x - 1 in z = x^2 for |x| < 1/2", func(z *big.Float) *big.Float {
		return sub(erfOverX(number(0).Sqrt(z)), number(1))
	}, 0, 0.25, 6},
}

// erfTerms is the number of coefficients of an interval of erf.
const erfTerms = 8

// erfPart returns the line of the table of an interval of erf: the value in its middle in two parts, then a polynomial.
func erfPart(i int) []float32 {
	middle := float64(i)/2 + 0.25
	center := mul(erfOverX(number(middle)), number(middle))
	high, _ := center.Float32()
	low, _ := sub(center, number(float64(high))).Float32()
	return append([]float32{high, low}, fit(func(t *big.Float) *big.Float {
		x := add(number(middle), t)
		return quo(sub(mul(erfOverX(x), x), center), t)
	}, -0.25, 0.25, erfTerms)...)
}

// pair is x in two float32.
func pair(x *big.Float) (high, low float32) {
	high, _ = x.Float32()
	low, _ = sub(x, number(float64(high))).Float32()
	return high, low
}

// Single writes the constants of package single.
func Single(w io.Writer) {
	fmt.Fprintf(w, "package single\n\n")
	fmt.Fprintf(w, "// The polynomials equal their functions at the Chebyshev points of the range. Their coefficients\n"+
		"// are rounded to float32, the lowest power first.\nvar (\n")
	for _, p := range polynomials {
		fmt.Fprintf(w, "// %s is %s.\n%s = [...]float32{", p.name, p.comment, p.name)
		for _, c := range fit(p.of, p.low, p.high, p.terms) {
			fmt.Fprintf(w, "%x, ", c)
		}
		fmt.Fprintf(w, "}\n\n")
	}
	fmt.Fprintf(w, ")\n\n// erfTable[i-1] is erf(m) = middle + rest for m = i/2 + 1/4, and (erf(m+t) - erf(m)) / t for "+
		"|t| <= 1/4.\nvar erfTable = [7]struct {\nmiddle, rest float32\nslope [%d]float32\n}{\n", erfTerms)
	for i := 1; i < 8; i++ {
		part := erfPart(i)
		fmt.Fprintf(w, "{%x, %x, [...]float32{", part[0], part[1])
		for _, c := range part[2:] {
			fmt.Fprintf(w, "%x, ", c)
		}
		fmt.Fprintf(w, "}},\n")
	}
	fmt.Fprintf(w, "}\n\n")
	high, low := pair(quo(number(1), ln2Of()))
	fmt.Fprintf(w, "// 1/ln 2 in two parts, and 1/3.\nconst (\nlog2EHigh = %x\nlog2ELow = %x\n", high, low)
	high, low = pair(quo(number(1), number(3)))
	fmt.Fprintf(w, "thirdHigh = %x\nthirdLow = %x\n)\n\n", high, low)
	fmt.Fprintf(w, "// twoOfPiBits is 32 zero bits and the first 224 bits of 2/pi after the binary point.\n")
	fmt.Fprintf(w, "var twoOfPiBits = [8]uint32{\n0,\n")
	rest := quo(number(2), pi())
	for range 7 {
		rest = mul(rest, number(0x1p32))
		word, _ := rest.Uint64()
		fmt.Fprintf(w, "%#08x,\n", word)
		rest = sub(rest, number(0).SetUint64(word))
	}
	fmt.Fprintf(w, "}\n")
}

// Coefficients are those of the polynomial of package single that has a name.
func Coefficients(name string) []float32 {
	for _, p := range polynomials {
		if p.name == name {
			return fit(p.of, p.low, p.high, p.terms)
		}
	}
	panic("gen: no polynomial " + name)
}
