// Package picture decodes images to the values of their pixels: the same on every machine, within limits. It reads no
// files, and neither scales nor crops.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
)

// Limits of an image.
const (
	MaxBytes  = 16 << 20 // encoded
	MaxPixels = 1 << 20
)

// ErrPicture is wrapped by every reason why bytes are no image that can be used.
var ErrPicture = errors.New("no usable image")

// Size is the shape of an image.
type Size struct{ Rows, Columns, Channels int }

// Values is how many values an image of the size has.
func (s Size) Values() int { return s.Rows * s.Columns * s.Channels }

// String is rows x columns x channels.
func (s Size) String() string { return fmt.Sprintf("%d x %d x %d", s.Rows, s.Columns, s.Channels) }

// Picture is an image: its values from 0 to 255, row after row, of each pixel its channels: grey, or red, green and
// blue.
type Picture struct {
	Size
	Values []byte
}

// Decode reads a PNG. Its bits are those of the file: of 16 a channel the upper 8; transparent pixels stand on black.
// An image is grey if its file says so. The error wraps ErrPicture.
func Decode(raw []byte) (Picture, error) {
	if len(raw) > MaxBytes {
		return Picture{}, fmt.Errorf("%w: it has more than %d bytes", ErrPicture, MaxBytes)
	}
	c, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return Picture{}, fmt.Errorf("%w: %w", ErrPicture, err)
	}
	if c.Width < 1 || c.Height < 1 || c.Width > MaxPixels/c.Height {
		return Picture{}, fmt.Errorf("%w: %d x %d pixels, and at most %d are read", ErrPicture, c.Height, c.Width, MaxPixels)
	}
	decoded, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return Picture{}, fmt.Errorf("%w: %w", ErrPicture, err)
	}
	return flatten(decoded, c.ColorModel == color.GrayModel || c.ColorModel == color.Gray16Model), nil
}

func flatten(decoded image.Image, grey bool) Picture {
	b := decoded.Bounds()
	p := Picture{Size: Size{Rows: b.Dy(), Columns: b.Dx(), Channels: 3}}
	if grey {
		p.Channels = 1
	}
	p.Values = make([]byte, 0, p.Size.Values())
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			red, green, blue, _ := decoded.At(x, y).RGBA()
			p.Values = append(p.Values, byte(red>>8))
			if !grey {
				p.Values = append(p.Values, byte(green>>8), byte(blue>>8))
			}
		}
	}
	return p
}
