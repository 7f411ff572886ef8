// Package digits draws images of handwritten-like digits from a seed, for measurements that need private data and may
// ship none: 8 rows and columns of values 0..255, each a digit of a font of 5 by 7 dots that is shifted, scaled,
// slanted and blurred at random.
package digits

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/philox"
)

// Side is the number of rows and columns of an image; Values are its pixels.
const (
	Side   = 8
	Values = Side * Side
)

// Classes is the number of digits.
const Classes = 10

// Size is that of an image.
var Size = picture.Size{Rows: Side, Columns: Side, Channels: 1}

// font has the dots of each digit, rows from the top, the bit of the left column highest.
var font = [Classes][7]uint8{
	{14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14}, {14, 17, 1, 2, 4, 8, 31}, {31, 2, 4, 2, 1, 17, 14},
	{2, 6, 10, 18, 31, 2, 2}, {31, 16, 30, 1, 1, 17, 14}, {6, 8, 16, 30, 17, 17, 14}, {31, 1, 2, 4, 8, 8, 8},
	{14, 17, 17, 14, 17, 17, 14}, {14, 17, 17, 15, 1, 2, 12},
}

// Labels are the names of the classes.
func Labels() (names []string) {
	for d := range Classes {
		names = append(names, fmt.Sprint(d))
	}
	return names
}

// Example is an image with its digit.
type Example struct {
	Digit  int
	Pixels [Values]int32
}

// Tokens writes the example as a classifier of images reads it: the class, then the pixels.
func (e Example) Tokens(into []int32) {
	into[0] = int32(e.Digit)
	copy(into[1:], e.Pixels[:])
}

// draws are how many random numbers an image takes.
const draws = 6 + Values

// Draw is the image of a digit that a seed and a number draw.
func Draw(seed uint64, number int, digit int) Example {
	u := make([]float32, draws)
	philox.NormalTo(u, seed, uint64(number))
	spread := func(i int, x float64) float64 { return x * math.Tanh(float64(u[i])) }
	e := Example{Digit: digit}
	wide, high := 1+spread(0, 0.15), 1+spread(1, 0.1)
	right, down, slant := spread(2, 0.7), spread(3, 0.5), spread(4, 0.2)
	ink := 215 + spread(5, 40)
	for r := range Side {
		for c := range Side {
			y := (float64(r)-3.5-down)/high + 3
			x := (float64(c)-3.5-right+slant*(float64(r)-3.5))/wide + 2
			v := ink*dots(font[digit], y, x) + 6*math.Abs(float64(u[6+r*Side+c]))
			e.Pixels[r*Side+c] = int32(math.Round(min(255, v)))
		}
	}
	return e
}

// dots is how dark a digit is at a place between its dots.
func dots(of [7]uint8, y, x float64) (dark float64) {
	top, left := math.Floor(y), math.Floor(x)
	for i := range 2 {
		for j := range 2 {
			row, column := top+float64(i), left+float64(j)
			if row < 0 || row > 6 || column < 0 || column > 4 || of[int(row)]>>(4-int(column))&1 == 0 {
				continue
			}
			dark += (1 - math.Abs(y-row)) * (1 - math.Abs(x-column))
		}
	}
	return min(1, dark)
}
