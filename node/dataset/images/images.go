// Package images reads the images of jobs that classify or draw images, and makes their examples: rows of tokens. It
// opens no file and knows no job; package dataset does.
package images

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/node/dataset/conversation"
)

// object is a line of JSON.
type object = map[string]json.RawMessage

// Set are the images of a job, all of one size, as examples.
type Set struct {
	Corpus *data.Corpus // a row for each: its class if it has one, then the values of its pixels
	Size   picture.Size
	Labels []string // of the classes, ascending; nil: images have none
}

// Image is an image, and the name of its class if it has one.
type Image struct {
	picture.Picture
	Label string
	from  string // where it is, for people
}

// ErrSet is wrapped by reasons why images cannot be learned together.
var ErrSet = errors.New("the images do not fit together")

// Parse returns the images of the bytes of a file: of JSON lines, or of a PNG. Where images have classes, a line names
// that of its image, and the folder of a PNG that of the PNG. Errors wrap conversation.ErrExample or
// picture.ErrPicture.
func Parse(name string, raw []byte, lines, classes bool) ([]Image, error) {
	switch {
	case lines:
		return inLines(name, raw, classes)
	case classes:
		return inFolder(name, raw)
	}
	p, err := picture.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return []Image{{p, "", name}}, nil
}

// inFolder is an image whose class is the name of its folder.
func inFolder(name string, raw []byte) ([]Image, error) {
	label := path.Base(path.Dir(name))
	if label == "." || label == "/" || label == ".." {
		return nil, fmt.Errorf("%s: %w: it lies in no folder that names its class", name, conversation.ErrExample)
	}
	p, err := picture.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return []Image{{p, label, name}}, nil
}

// inLines are the images of JSON objects, one a line.
func inLines(name string, raw []byte, classes bool) (all []Image, err error) {
	err = source.File{Format: source.JSONL, Name: name, Data: raw}.EachObject(func(o object) error {
		x, err := Of(o, classes)
		x.from = fmt.Sprintf("example %d of %s", len(all)+1, name)
		all = append(all, x)
		return err
	})
	return all, err
}

// Of is the image of a JSON object, with its class if images have classes.
func Of(o map[string]json.RawMessage, classes bool) (x Image, err error) {
	if classes {
		if x.Label, err = labelled.LabelOf(labelled.DefaultLabel, o[labelled.DefaultLabel]); err != nil {
			return Image{}, err
		}
	}
	x.Picture, err = pictureOf(o)
	return x, err
}

// pictureOf is the image of a JSON object.
func pictureOf(o object) (picture.Picture, error) {
	var code string
	if json.Unmarshal(o["image"], &code) != nil || code == "" {
		return picture.Picture{}, fmt.Errorf("%w: \"image\" is no text", conversation.ErrExample)
	}
	code = strings.TrimPrefix(code, "data:image/png;base64,")
	if len(code) > base64.StdEncoding.EncodedLen(picture.MaxBytes) {
		return picture.Picture{}, fmt.Errorf("%w: more than %d bytes", picture.ErrPicture, picture.MaxBytes)
	}
	file, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		return picture.Picture{}, fmt.Errorf("%w: \"image\" is not in base64: %w", conversation.ErrExample, err)
	}
	return picture.Decode(file)
}

// WithoutClasses makes the examples of images without classes; a part is held out. Errors wrap ErrSet.
func WithoutClasses(all []Image, seed uint64, held float64) (*Set, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrSet)
	}
	p, rows := &Set{Size: all[0].Size}, make([][]uint32, len(all))
	for i, x := range all {
		if x.Size != p.Size {
			return nil, fmt.Errorf("%w: %s is %v, and %s %v", ErrSet, all[0].from, p.Size, x.from, x.Size)
		}
		rows[i] = appended(nil, x)
	}
	var err error
	p.Corpus, err = data.Rows(rows, 256, seed, held)
	return p, err
}

// appended is a row with the values of an image after it.
func appended(row []uint32, x Image) []uint32 {
	for _, v := range x.Values {
		row = append(row, uint32(v))
	}
	return row
}

// WithClasses makes the examples of images of at least two classes, which are those that occur unless they are given; a
// part is held out. Errors wrap ErrSet.
func WithClasses(all []Image, classes []string, seed uint64, held float64) (*Set, error) {
	p := &Set{}
	for _, x := range all {
		if p.Labels = append(p.Labels, x.Label); x.Size != all[0].Size {
			return nil, fmt.Errorf("%w: %s is %v, and %s %v", ErrSet, all[0].from, all[0].Size, x.from, x.Size)
		}
	}
	var err error
	if p.Labels, err = labelled.Classes(p.Labels, classes); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSet, err)
	}
	if len(p.Labels) < 2 {
		return nil, fmt.Errorf("%w: there is no second class besides %q", ErrSet, p.Labels)
	}
	p.Size = all[0].Size
	rows := make([][]uint32, len(all))
	for i, x := range all {
		class, _ := slices.BinarySearch(p.Labels, x.Label)
		rows[i] = appended([]uint32{uint32(class)}, x)
	}
	p.Corpus, err = data.Rows(rows, uint32(max(256, len(p.Labels))), seed, held)
	return p, err
}

// Tokens is how many tokens an example has.
func (p *Set) Tokens() int {
	if p.Labels == nil {
		return p.Size.Values()
	}
	return 1 + p.Size.Values()
}
