package spec

import (
	"cmp"
	"reflect"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job/strict"
)

// Canonical is the canonical encoding of the keys of a job: a map from keys to values, zero values left out. It
// holds no path, no output folder and nothing else that is about one machine, so the same job has the same bytes
// everywhere; the data and the tokenizer it stands for are bound by their own digests.
func (j Spec) Canonical() []byte { return canon.MustMarshal(canonical(reflect.ValueOf(j))) }

func canonical(v reflect.Value) any {
	switch t := v.Interface().(type) {
	case Tokenizer:
		return map[string]any{"kind": string(t.Kind), "vocab_size": t.VocabSize}
	case map[string]any:
		return t
	}
	switch v.Kind() {
	case reflect.Pointer:
		return canonical(v.Elem())
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = canonical(v.Index(i))
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range strict.Keys(v.Type()) {
			if x := v.Field(f.Index); !f.Local && !x.IsZero() {
				out[cmp.Or(f.Old, f.Name)] = canonicalWord(f, x)
			}
		}
		return out
	}
	return v.Interface()
}

// canonicalWord is a value in the words of the version that named its key first: another name changes no job.
func canonicalWord(k strict.Key, v reflect.Value) any {
	for old, now := range k.OldOne {
		if v.Kind() == reflect.String && v.String() == now {
			return old
		}
	}
	return canonical(v)
}
