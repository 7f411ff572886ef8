package images

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"testing"
)

// Of lines of a stranger come images that have the values that their size says, and a class each, or an error.
func FuzzParse(f *testing.F) {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"image": "`+base64.StdEncoding.EncodeToString(file.Bytes())+`", "label": 3}`), true)
	f.Add(file.Bytes(), false)
	f.Fuzz(func(t *testing.T, raw []byte, lines bool) {
		some, err := Parse("a/b", raw, lines, true)
		for _, x := range some {
			if err == nil && (x.Label == "" || x.Size.Values() != len(x.Values)) {
				t.Fatalf("%+v", x)
			}
		}
	})
}
