// Command shapes writes the data of examples/image.yaml: small grey images of circles, squares, triangles and crosses,
// as lines of JSON with the PNG in base64 and the name of the shape. The same seed draws the same images on every
// machine.
//
//	go run ./scripts/shapes --out examples/shapes/images.jsonl
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"

	"github.com/starling-network/starling/compute/philox"
)

func main() {
	out := flag.String("out", "", "file to write")
	seed := flag.Uint64("seed", 1, "seed of the images")
	count := flag.Int("count", 1600, "number of images")
	side := flag.Int("side", 12, "rows and columns of an image, at least 8")
	flag.Parse()
	if err := run(*out, *seed, *count, *side); err != nil {
		fmt.Fprintln(os.Stderr, "shapes:", err)
		os.Exit(1)
	}
}

func run(out string, seed uint64, count, side int) error {
	if out == "" || count < 1 || side < 8 || side > 512 {
		return errors.New("give --out FILE, a --count of at least 1 and a --side of 8 to 512")
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(write(f, philox.New(seed, 0), count, side), f.Close())
}

// write writes count images; the shapes take turns.
func write(to io.Writer, random *philox.Reader, count, side int) error {
	w := bufio.NewWriter(to)
	lines := json.NewEncoder(w)
	for i := range count {
		s := shapes[i%len(shapes)]
		var file bytes.Buffer
		if err := png.Encode(&file, draw(random, s.covers, side)); err != nil {
			return err
		}
		if err := lines.Encode(struct {
			Image []byte `json:"image"`
			Label string `json:"label"`
		}{file.Bytes(), s.name}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// A shape covers the points of a square around 0 that are up to size away from 0, or some of them.
type shape struct {
	name   string
	covers func(x, y, size int) bool
}

var shapes = []shape{
	{"circle", func(x, y, size int) bool { return x*x+y*y <= size*size }},
	{"square", func(x, y, size int) bool { return true }},
	{"triangle", func(x, y, size int) bool { return 2*max(x, -x) <= y+size }},
	{"cross", func(x, y, size int) bool { return 3*min(max(x, -x), max(y, -y)) <= size }},
}

// draw draws a shape of a drawn size at a drawn place, in one of two drawn greys.
func draw(random *philox.Reader, covers func(x, y, size int) bool, side int) image.Image {
	below := func(n int) int { return int(random.Uint64n(uint64(n))) }
	size := 3 + below(side/2-3)
	row, column := size+below(side-2*size), size+below(side-2*size)
	dark, light := uint8(below(96)), uint8(160+below(96))
	if below(2) == 0 {
		dark, light = light, dark
	}
	m := image.NewGray(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			grey := dark
			if dx, dy := x-column, y-row; max(dx, -dx, dy, -dy) <= size && covers(dx, dy, size) {
				grey = light
			}
			m.SetGray(x, y, color.Gray{Y: grey})
		}
	}
	return m
}
