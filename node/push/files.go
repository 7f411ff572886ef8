package push

import (
	"cmp"
	"os"
	"time"

	"github.com/starling-network/starling/node/push/parcel"
	"github.com/starling-network/starling/node/push/published"
	"github.com/starling-network/starling/node/push/record"
)

// digests remembers the digests of files for as long as they do not change.
type digests map[string]digest

type digest struct {
	bytes    int64
	modified time.Time
	sum      string
}

// list finds the files of a model, in the order in which they are sent.
func (d digests) list(dir string) (files []parcel.File, total int64, _ error) {
	if !published.IsModel(dir) {
		return nil, 0, &parcel.Error{Code: parcel.NoModel, What: dir + " holds no model",
			Fix: "name a folder with the safetensors of a model, such as the output folder of a finished run"}
	}
	found, err := published.Files(dir)
	if err != nil {
		return nil, 0, parcel.OnDisk(err)
	}
	for _, f := range found {
		sum, err := d.of(f.Path, f.Info)
		if err != nil {
			return nil, 0, err
		}
		files = append(files, parcel.File{Name: f.Name, Path: f.Path, Bytes: f.Info.Size(), SHA256: sum})
		total += f.Info.Size()
	}
	return files, total, nil
}

func (d digests) of(path string, info os.FileInfo) (string, error) {
	if had, ok := d[path]; ok && had.bytes == info.Size() && had.modified.Equal(info.ModTime()) {
		return had.sum, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", parcel.OnDisk(err)
	}
	defer f.Close()
	sum, err := parcel.Digest(f, 0, info.Size())
	if err == nil {
		d[path] = digest{info.Size(), info.ModTime(), sum}
	}
	return sum, err
}

// inOrder sorts records by folder and target, the model of the run last.
func inOrder(a, b *record.Copy) int {
	return cmp.Or(cmp.Compare(b2i(a.From == ""), b2i(b.From == "")), cmp.Compare(record.Step(a.From), record.Step(b.From)))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
