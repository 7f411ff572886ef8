package spec

import (
	"fmt"
	"reflect"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/strict"
)

// TokenizerKind says where the tokenizer comes from.
type TokenizerKind string

const (
	ByteLevel     TokenizerKind = "byte-level" // 256 ids: the bytes
	TrainBPE      TokenizerKind = "bpe"        // trained on the datasets before the first step
	TokenizerFile TokenizerKind = "file"       // a tokenizer.json
)

// Tokenizer is `byte-level`, `{train: {type: bpe, vocab_size: N}}`, or the path of a tokenizer.json.
type Tokenizer struct {
	Kind      TokenizerKind
	VocabSize int    // of TrainBPE
	Path      string // of TokenizerFile, as written: relative to the folder of the job file
}

// Decode implements strict.Node.
func (t *Tokenizer) Decode(d *strict.Decoder, path string, n *yaml.Node) {
	switch {
	case n.Kind == yaml.MappingNode:
		form := struct {
			Train struct {
				Type      string `job:"type,required" one:"bpe"`
				VocabSize int    `job:"vocab_size,required" in:"[257,1048576]"`
			} `job:"train,required"`
		}{}
		d.Value(path, n, reflect.ValueOf(&form).Elem())
		*t = Tokenizer{Kind: TrainBPE, VocabSize: form.Train.VocabSize}
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		d.WrongType(path, n, "byte-level, {train: {type: bpe, vocab_size: 8192}}, or the path of a tokenizer.json")
	case n.Value == string(ByteLevel):
		*t = Tokenizer{Kind: ByteLevel}
	default:
		*t = Tokenizer{Kind: TokenizerFile, Path: n.Value}
	}
}

// MaxWorkers bounds the workers of a job.
const MaxWorkers = 1024

// Decode implements strict.Node.
func (w *Workers) Decode(d *strict.Decoder, path string, n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		d.Section(path, n, reflect.ValueOf(w).Elem())
		return
	}
	var count int
	d.Scalar(path, n, reflect.ValueOf(&count).Elem())
	if d.Bad(path) {
		return
	}
	if count < 1 || count > MaxWorkers {
		d.ReportAt(n, path, problem.BadValue, path+" is "+strict.Clip(n.Value),
			fmt.Sprintf("it must be at least 1 and at most %d", MaxWorkers),
			"choose a value in that range")
		return
	}
	*w = Workers{Min: count, Target: count, Max: count}
}
