package dataset

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/data/source"
)

// Pictures are the examples of a job that classifies or draws images, all of one size.
type Pictures struct {
	Corpus *data.Corpus // a row for each: its class if it has one, then the values of its pixels
	Size   picture.Size
	Labels []string // of the classes, ascending; nil: images have none
}

// classImage is an image and the name of its class.
type classImage struct {
	picture.Picture
	label string
	from  string // where it is, for people
}

// ErrPictures is wrapped by reasons why images cannot be classified together.
var ErrPictures = errors.New("the images do not fit together")

// PicturesOf reads the images of a job. The error is a *problem.ErrorList.
func PicturesOf(j *job.Job) (*Pictures, error) {
	all, err := images(j)
	if err != nil {
		return nil, err
	}
	if j.Task == spec.TaskDiffusion {
		p, err := alone(all, j.Seed, j.ValSetSize)
		if err != nil {
			return nil, j.Refuse("datasets", problem.NoData, "the data cannot be used", err,
				"give images of one size, as PNG files or as jsonl lines")
		}
		return p, nil
	}
	p, err := together(all, j.Seed, j.ValSetSize)
	if err != nil {
		return nil, j.Refuse("datasets", problem.NoData, "the data cannot be used", err,
			"give images of one size and of at least two classes, as PNG files in a folder for each class or as jsonl lines")
	}
	return p, nil
}

// images reads the files of a job, in their order.
func images(j *job.Job) (all []classImage, err error) {
	files, err := Of(j)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		raw, err := os.ReadFile(f.Path)
		if err != nil {
			return nil, j.Refuse(f.Key, problem.NoData, "cannot read "+f.Path, err, "check the file's permissions")
		}
		some, err := f.pictures(raw)
		if err != nil {
			return nil, j.Refuse(f.Key, problem.NoData, "the data cannot be used", err,
				`give PNG files in a folder for each class, or jsonl lines {"image": "PNG in base64", "label": "name"}; images `+
					"that are drawn need no class")
		}
		all = append(all, some...)
	}
	return all, nil
}

// pictures are the images of the bytes of a file.
func (f File) pictures(raw []byte) ([]classImage, error) {
	switch lines := f.Format == source.JSONL; {
	case lines && f.task == spec.TaskDiffusion:
		return inLines(f.Name, raw, func(o object) (classImage, error) {
			p, err := pictureOf(o)
			return classImage{Picture: p}, err
		})
	case lines:
		return inLines(f.Name, raw, inObject)
	case f.task == spec.TaskDiffusion:
		p, err := picture.Decode(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		return []classImage{{p, "", f.Name}}, nil
	}
	return inFolder(f.Name, raw)
}

// inFolder is an image whose class is the name of its folder.
func inFolder(name string, raw []byte) ([]classImage, error) {
	label := path.Base(path.Dir(name))
	if label == "." || label == "/" || label == ".." {
		return nil, fmt.Errorf("%s: %w: it lies in no folder that names its class", name, ErrExample)
	}
	p, err := picture.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return []classImage{{p, label, name}}, nil
}

// inLines are the images of JSON objects, one a line.
func inLines(name string, raw []byte, of func(o object) (classImage, error)) (all []classImage, err error) {
	err = source.File{Format: source.JSONL, Name: name, Data: raw}.EachObject(func(o object) error {
		x, err := of(o)
		x.from = fmt.Sprintf("example %d of %s", len(all)+1, name)
		all = append(all, x)
		return err
	})
	return all, err
}

// inObject is the image of a JSON object, with its class.
func inObject(o object) (classImage, error) {
	label, err := labelled.LabelOf(labelled.DefaultLabel, o[labelled.DefaultLabel])
	if err != nil {
		return classImage{}, err
	}
	p, err := pictureOf(o)
	return classImage{Picture: p, label: label}, err
}

// pictureOf is the image of a JSON object.
func pictureOf(o object) (picture.Picture, error) {
	var code string
	if json.Unmarshal(o["image"], &code) != nil || code == "" {
		return picture.Picture{}, fmt.Errorf("%w: \"image\" is no text", ErrExample)
	}
	code = strings.TrimPrefix(code, "data:image/png;base64,")
	if len(code) > base64.StdEncoding.EncodedLen(picture.MaxBytes) {
		return picture.Picture{}, fmt.Errorf("%w: more than %d bytes", picture.ErrPicture, picture.MaxBytes)
	}
	file, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		return picture.Picture{}, fmt.Errorf("%w: \"image\" is not in base64: %w", ErrExample, err)
	}
	return picture.Decode(file)
}

// alone makes the examples of images without classes.
func alone(all []classImage, seed uint64, held float64) (*Pictures, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrPictures)
	}
	p, rows := &Pictures{Size: all[0].Size}, make([][]uint32, len(all))
	for i, x := range all {
		if x.Size != p.Size {
			return nil, fmt.Errorf("%w: %s is %v, and %s %v", ErrPictures, all[0].from, p.Size, x.from, x.Size)
		}
		rows[i] = appended(nil, x)
	}
	var err error
	p.Corpus, err = data.Rows(rows, 256, seed, held)
	return p, err
}

// appended is a row with the values of an image after it.
func appended(row []uint32, x classImage) []uint32 {
	for _, v := range x.Values {
		row = append(row, uint32(v))
	}
	return row
}

// together makes the examples of images.
func together(all []classImage, seed uint64, held float64) (*Pictures, error) {
	p := &Pictures{}
	for _, x := range all {
		if p.Labels = append(p.Labels, x.label); x.Size != all[0].Size {
			return nil, fmt.Errorf("%w: %s is %v, and %s %v", ErrPictures, all[0].from, all[0].Size, x.from, x.Size)
		}
	}
	slices.Sort(p.Labels)
	if p.Labels = slices.Compact(p.Labels); len(p.Labels) < 2 {
		return nil, fmt.Errorf("%w: there is no second class besides %q", ErrPictures, p.Labels)
	}
	p.Size = all[0].Size
	rows := make([][]uint32, len(all))
	for i, x := range all {
		class, _ := slices.BinarySearch(p.Labels, x.label)
		rows[i] = appended([]uint32{uint32(class)}, x)
	}
	var err error
	p.Corpus, err = data.Rows(rows, uint32(max(256, len(p.Labels))), seed, held)
	return p, err
}

// Tokens is how many tokens an example has.
func (p *Pictures) Tokens() int {
	if p.Labels == nil {
		return p.Size.Values()
	}
	return 1 + p.Size.Values()
}
