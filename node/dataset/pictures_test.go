package dataset

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data/picture"
)

// drawn is a PNG of one grey.
func drawn(t testing.TB, rows, columns int, grey uint8) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, columns, rows))
	for i := range m.Pix {
		m.Pix[i] = grey
	}
	m.SetGray(0, 0, color.Gray{Y: 7})
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const pictured = "apiVersion: starling/v1\nkind: TrainingJob\ntask: classify\nmodel: {architecture: mlp}\n" +
	"datasets: [{path: \"data/**/*.png\"}]\nval_set_size: 0.25\ntraining: {max_steps: 8}\n"

// imageJob is a job in a folder with the given files.
func imageJob(t *testing.T, files map[string][]byte, set ...string) *job.Job {
	t.Helper()
	dir := t.TempDir()
	for name, raw := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, raw, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(path, []byte(pictured), 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(path, set...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// The same images in folders and in lines of JSON are the same examples.
func TestPictures(t *testing.T) {
	files, lines := map[string][]byte{}, ""
	for i := range 12 {
		label := []string{"cat", "dog", "ant"}[i%3]
		raw := drawn(t, 2, 3, uint8(10*i))
		files[fmt.Sprintf("data/x/%s/%02d.png", label, i)] = raw
		lines += fmt.Sprintf("{\"image\": \"data:image/png;base64,%s\", \"label\": %q}\n",
			base64.StdEncoding.EncodeToString(raw), label)
	}
	files["data/all.jsonl"] = []byte(lines)
	j := imageJob(t, files)
	p, err := PicturesOf(j)
	if err != nil {
		t.Fatal(err)
	}
	if p.Size != (picture.Size{Rows: 2, Columns: 3, Channels: 1}) ||
		!slices.Equal(p.Labels, []string{"ant", "cat", "dog"}) ||
		p.Corpus.Train.Len() != 9*7 || p.Corpus.Val.Len() != 3*7 || p.Corpus.Windows(p.Tokens()) != 8 {
		t.Fatalf("%v, %q, %d tokens to train on, %d held out", p.Size, p.Labels, p.Corpus.Train.Len(), p.Corpus.Val.Len())
	}
	classes := map[uint32]int{}
	for i := 0; i < p.Corpus.Train.Len(); i += 7 {
		class, grey := p.Corpus.Train.At(i), p.Corpus.Train.At(i+2)
		if want := []uint32{1, 2, 0}[grey/10%3]; class != want || p.Corpus.Train.At(i+1) != 7 {
			t.Errorf("an image of grey %d has class %d", grey, class)
		}
		classes[class]++
	}
	if len(classes) != 3 {
		t.Errorf("classes %v", classes)
	}
	count, err := Count(t.Context(), j, nil)
	if err != nil || count.Sequences != 8 || count.SequenceLength != 7 || count.Documents != 12 {
		t.Errorf("counted %+v, %v", count, err)
	}
	byLines := imageJob(t, files, "datasets=[{path: data/all.jsonl, format: jsonl}]")
	q, err := PicturesOf(byLines)
	if err != nil || q.Size != p.Size || !slices.Equal(q.Labels, p.Labels) || q.Corpus.Val.Len() != p.Corpus.Val.Len() {
		t.Errorf("%+v, %v", q, err)
	}
	for _, of := range []*job.Job{j, byLines} {
		found, err := Of(of)
		if err != nil {
			t.Fatal(err)
		}
		reports, err := Inspect(t.Context(), found, 10)
		if v := Judge(reports); err != nil || !v.Valid || v.Documents != 12 {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

func TestPicturesThatDoNotFit(t *testing.T) {
	one, other := drawn(t, 2, 3, 1), drawn(t, 3, 2, 1)
	line := func(label string) []byte {
		return []byte(fmt.Sprintf("{\"image\": %q, \"label\": %s}\n", base64.StdEncoding.EncodeToString(one), label))
	}
	for want, files := range map[string]map[string][]byte{
		"2 x 3":            {"data/a/1.png": one, "data/b/1.png": other},
		"no second class":  {"data/a/1.png": one, "data/a/2.png": one},
		"no usable image":  {"data/a/1.png": one, "data/b/1.png": []byte("none")},
		"\"label\" is":     {"a.jsonl": line("[1]")},
		"\"image\" is no":  {"a.jsonl": []byte("{\"label\": \"a\"}\n")},
		"not in base64":    {"a.jsonl": []byte("{\"label\": \"a\", \"image\": \"?\"}\n")},
		"not a JSON objec": {"a.jsonl": append(line("1"), "2\n"...)},
	} {
		var set []string
		if files["a.jsonl"] != nil {
			set = []string{"datasets=[{path: a.jsonl, format: jsonl}]"}
		}
		_, err := PicturesOf(imageJob(t, files, set...))
		var list *problem.ErrorList
		if !errors.As(err, &list) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
