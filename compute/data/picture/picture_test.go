package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"
)

func encoded(t testing.TB, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDecode(t *testing.T) {
	grey := image.NewGray(image.Rect(0, 0, 2, 3))
	copy(grey.Pix, []byte{1, 2, 3, 4, 5, 255})
	deep := image.NewGray16(image.Rect(0, 0, 1, 1))
	deep.SetGray16(0, 0, color.Gray16{Y: 0x12ff})
	clear := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	clear.SetNRGBA(0, 0, color.NRGBA{R: 10, G: 20, B: 30, A: 255})
	clear.SetNRGBA(1, 0, color.NRGBA{R: 200, G: 100, B: 50, A: 0})
	for name, c := range map[string]struct {
		image image.Image
		want  Picture
	}{
		"grey":        {grey, Picture{Size{3, 2, 1}, []byte{1, 2, 3, 4, 5, 255}}},
		"16 bits":     {deep, Picture{Size{1, 1, 1}, []byte{0x12}}},
		"transparent": {clear, Picture{Size{1, 2, 3}, []byte{10, 20, 30, 0, 0, 0}}},
	} {
		p, err := Decode(encoded(t, c.image))
		if err != nil || p.Size != c.want.Size || !slices.Equal(p.Values, c.want.Values) {
			t.Errorf("%s: %v, %v; want %v", name, p, err, c.want)
		}
	}
}

// An image that says to be larger than the limit is refused before any of it is made.
func TestLimits(t *testing.T) {
	raw := encoded(t, image.NewGray(image.Rect(0, 0, 2, 3)))
	huge := slices.Clone(raw)
	binary.BigEndian.PutUint32(huge[16:], 1<<30)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	for name, bad := range map[string][]byte{"empty": nil, "text": []byte("no image"), "cut": raw[:len(raw)-20],
		"huge": huge, "long": make([]byte, MaxBytes+1)} {
		if _, err := Decode(bad); !errors.Is(err, ErrPicture) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, image.NewGray(image.Rect(0, 0, 2, 3))))
	f.Add(encoded(f, image.NewNRGBA(image.Rect(0, 0, 3, 1))))
	f.Add(encoded(f, image.NewPaletted(image.Rect(0, 0, 4, 4), color.Palette{color.Black, color.White})))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Decode(raw)
		if err != nil {
			if !errors.Is(err, ErrPicture) {
				t.Fatal(err)
			}
			return
		}
		if p.Size.Values() != len(p.Values) || p.Rows*p.Columns > MaxPixels || p.Rows < 1 || p.Columns < 1 {
			t.Fatalf("%v with %d values", p.Size, len(p.Values))
		}
	})
}
