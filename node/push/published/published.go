// Package published lists the files of a folder that may leave this machine: those of a model, and the public records
// of its run. It sends none.
package published

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// names are the files of a folder that may leave, if they are there: those of a model as Hugging Face libraries and
// llama.cpp read them, and the public records of its run. A folder has more files, such as the keys of its network,
// its job file with paths of this machine, and its log, which never leave.
var names = []string{
	"model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json", "model.gguf",
	"adapter_model.safetensors", "adapter_config.json",
	"adapter/adapter_model.safetensors", "adapter/adapter_config.json",
	"generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json",
	"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json",
	"left_layers.json",
	"README.md", "LICENSE", "LICENSE.txt", "NOTICE",
	"report.html", "summary.json", "lineage.jsonl", "metrics.jsonl", "trainer_state.json",
	"config.json", // the last: a reader that finds it finds the rest
}

// weights are the files without which a folder is no model.
var weights = []string{"model.safetensors", "model-*-of-*.safetensors", "model.gguf", "adapter_model.safetensors"}

// File is one of them.
type File struct {
	Name string // below the folder, with slashes
	Path string // on this machine
	Info fs.FileInfo
}

// Files finds the files of a model, in the order in which they are sent.
func Files(dir string) (files []File, _ error) {
	for _, pattern := range names {
		found, err := filepath.Glob(filepath.Join(escaped(dir), filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
				continue
			}
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return nil, err
			}
			files = append(files, File{filepath.ToSlash(name), path, info})
		}
	}
	return files, nil
}

// IsModel reports whether a folder has weights.
func IsModel(dir string) bool {
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
