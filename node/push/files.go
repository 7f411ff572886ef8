package push

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/starling-network/starling/node/push/parcel"
	"github.com/starling-network/starling/node/push/record"
)

// names are the files of a folder that are sent, if they are there: those of a model as Hugging Face libraries and
// llama.cpp read them, and the public records of its run. A folder has more files, such as the keys of its network,
// its job file with paths of this machine, and its log, which are never sent.
var names = []string{
	"model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", "model.gguf",
	"adapter_model.safetensors", "adapter_config.json",
	"adapter/adapter_model.safetensors", "adapter/adapter_config.json",
	"generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json",
	"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json",
	"README.md", "LICENSE", "LICENSE.txt", "NOTICE",
	"report.html", "summary.json", "lineage.jsonl", "metrics.jsonl", "trainer_state.json",
	"config.json", // the last: a reader that finds it finds the rest
}

// weights are the files without which a folder is no model.
var weights = []string{"model.safetensors", "model-*-of-*.safetensors", "model.gguf", "adapter_model.safetensors"}

// digests remembers the digests of files for as long as they do not change.
type digests map[string]digest

type digest struct {
	bytes    int64
	modified time.Time
	sum      string
}

// list finds the files of a model, in the order in which they are sent.
func (d digests) list(dir string) (files []parcel.File, total int64, _ error) {
	if !isModel(dir) {
		return nil, 0, &parcel.Error{Code: parcel.NoModel, What: dir + " holds no model",
			Fix: "name a folder with the safetensors of a model, such as the output folder of a finished run"}
	}
	for _, pattern := range names {
		found, err := filepath.Glob(filepath.Join(escaped(dir), filepath.FromSlash(pattern)))
		if err != nil {
			return nil, 0, parcel.OnDisk(err)
		}
		for _, path := range found {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
				continue
			}
			if err != nil {
				return nil, 0, parcel.OnDisk(err)
			}
			sum, err := d.of(path, info)
			if err != nil {
				return nil, 0, err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return nil, 0, parcel.OnDisk(err)
			}
			files = append(files, parcel.File{Name: filepath.ToSlash(name), Path: path, Bytes: info.Size(), SHA256: sum})
			total += info.Size()
		}
	}
	return files, total, nil
}

func isModel(dir string) bool {
	return slices.ContainsFunc(weights, func(pattern string) bool {
		found, err := filepath.Glob(filepath.Join(escaped(dir), pattern))
		return err == nil && len(found) > 0
	})
}

// escaped is a folder whose name is no pattern.
func escaped(dir string) string {
	var out []rune
	for _, c := range dir {
		if c == '*' || c == '?' || c == '[' || c == '\\' && filepath.Separator != '\\' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return string(out)
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
