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
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/data/source"
)

// Pictures are the examples of a job that classifies images, all of one size.
type Pictures struct {
	Corpus *data.Corpus // a row for each: its class, then the values of its pixels
	Size   picture.Size
	Labels []string // of the classes, ascending
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
	p, err := together(all, j.Seed, j.ValSetSize)
	if err != nil {
		return nil, keyProblem(j, "datasets", problem.NoData, "the data cannot be used", err,
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
			return nil, keyProblem(j, f.Key, problem.NoData, "cannot read "+f.Path, err, "check the file's permissions")
		}
		read := inFolder
		if f.Format == source.JSONL {
			read = inLines
		}
		some, err := read(f.Name, raw)
		if err != nil {
			return nil, keyProblem(j, f.Key, problem.NoData, "the data cannot be used", err,
				`give PNG files in a folder for each class, or jsonl lines {"image": "PNG in base64", "label": "name"}`)
		}
		all = append(all, some...)
	}
	return all, nil
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
func inLines(name string, raw []byte) (all []classImage, err error) {
	err = source.File{Format: source.JSONL, Name: name, Data: raw}.EachObject(func(o object) error {
		x, err := inObject(o)
		x.from = fmt.Sprintf("example %d of %s", len(all)+1, name)
		all = append(all, x)
		return err
	})
	return all, err
}

// inObject is the image of a JSON object.
func inObject(o object) (classImage, error) {
	var code string
	if json.Unmarshal(o["image"], &code) != nil || code == "" {
		return classImage{}, fmt.Errorf("%w: \"image\" is no text", ErrExample)
	}
	label, err := labelled.LabelOf(labelled.DefaultLabel, o[labelled.DefaultLabel])
	if err != nil {
		return classImage{}, err
	}
	code = strings.TrimPrefix(code, "data:image/png;base64,")
	if len(code) > base64.StdEncoding.EncodedLen(picture.MaxBytes) {
		return classImage{}, fmt.Errorf("%w: more than %d bytes", picture.ErrPicture, picture.MaxBytes)
	}
	file, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		return classImage{}, fmt.Errorf("%w: \"image\" is not in base64: %w", ErrExample, err)
	}
	p, err := picture.Decode(file)
	return classImage{Picture: p, label: label}, err
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
		rows[i] = make([]uint32, 1, 1+len(x.Values))
		rows[i][0] = uint32(class)
		for _, v := range x.Values {
			rows[i] = append(rows[i], uint32(v))
		}
	}
	var err error
	p.Corpus, err = data.Rows(rows, uint32(max(256, len(p.Labels))), seed, held)
	return p, err
}

// Tokens is how many tokens an example has.
func (p *Pictures) Tokens() int { return 1 + p.Size.Values() }
