// Package hubfile makes the files of a folder that tools of the Hugging Face Hub load: files that write themselves, and
// JSON of others, of which only some keys change. Which files a model has is for node/prepare.
package hubfile

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
)

// File is a file of an exported model, which writes itself.
type File struct {
	Name  string
	Write func(w io.Writer) error
}

// Text is a file with a text.
func Text(name string, text []byte) File {
	return File{name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}}
}

// Models are the weights of each of n models, of the units of a swarm.
func Models(n int, list []architecture.Named, of func(model int) map[string]*tensor.Tensor) (files []File) {
	for k := range n {
		files = append(files, Weights(fmt.Sprintf("models/%d.safetensors", k), list,
			func(name string) (*tensor.Tensor, error) { return of(k)[name], nil }))
	}
	return files
}

// Weights is a file of safetensors.
func Weights(file string, list []architecture.Named, weight func(name string) (*tensor.Tensor, error)) File {
	return File{file, func(w io.Writer) error {
		names, shapes := make([]string, len(list)), make([]tensor.Shape, len(list))
		for i, n := range list {
			names[i], shapes[i] = n.Name, n.Shape
		}
		return safetensors.EncodeEach(w, names, shapes, map[string]string{"format": "pt"},
			func(i int) (*tensor.Tensor, error) { return weight(names[i]) })
	}}
}

// AdapterJSON is the config of an adapter. Loaders that find the base by its adapter read there which it is: what the
// job names.
func AdapterJSON(adapter func() ([]byte, error), base string) ([]byte, error) {
	text, err := adapter()
	if err != nil || base == "" {
		return text, err
	}
	config := Object{}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	name, err := json.Marshal(base)
	config["base_model_name_or_path"] = name
	return config.Bytes(), err
}
