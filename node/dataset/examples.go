package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/nodes"
	"github.com/starling-network/starling/compute/data/paired"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/node/dataset/conversation"
	"github.com/starling-network/starling/node/dataset/images"
)

// ErrExample is wrapped by every reason why an object is no example of the task.
var ErrExample = conversation.ErrExample

// object is a line of a file of examples.
type object = map[string]json.RawMessage

// examples returns how the objects of a file become documents in the task of its job; nil: as its field says.
func (f File) examples() func(object) ([]source.Document, error) {
	if f.task == spec.TaskEmbed {
		return func(o object) ([]source.Document, error) {
			p, err := paired.Of(o, f.Field, f.second)
			return []source.Document{{Text: p.Anchor}, {Text: p.Positive}}, err
		}
	}
	if f.second != "" {
		return func(o object) ([]source.Document, error) {
			x, err := labelled.Of(o, f.Field, f.second)
			return []source.Document{{Text: x.Text}}, err
		}
	}
	if f.task == spec.TaskDiffusion { // for reports: the text of an image is its size
		return func(o object) ([]source.Document, error) {
			x, err := images.Of(o, false)
			return []source.Document{{Text: x.Size.String()}}, err
		}
	}
	if f.task == spec.TaskClassify { // for reports: the text of an image is the name of its class
		return func(o object) ([]source.Document, error) {
			x, err := images.Of(o, true)
			return []source.Document{{Text: x.Label}}, err
		}
	}
	if f.task == spec.TaskGraph { // for reports, likewise
		return func(o object) ([]source.Document, error) {
			text, err := nodes.Text(o)
			return []source.Document{{Text: text}}, err
		}
	}
	talks := f.Field == spec.FieldChats && f.Format == source.JSONL
	answered := f.task == spec.TaskSFT || f.task == spec.TaskDPO || f.task == spec.TaskGRPO ||
		f.task == spec.TaskReward
	if !answered && !talks {
		return nil
	}
	if !answered {
		of := conversation.Transcripts
		if f.answers {
			of = conversation.Answers
		}
		write, wrong := of(f.base)
		return func(o object) ([]source.Document, error) { return write.Talk(o, f.Field, wrong) }
	}
	write, wrong := conversation.Answers(f.base)
	return func(o object) (docs []source.Document, err error) {
		switch {
		case wrong != nil:
			return nil, wrong
		case f.task == spec.TaskDPO || f.task == spec.TaskReward:
			return write.Pair(o)
		case f.rewards != nil:
			if o, err = compared(o, f.rewards); err != nil {
				return nil, err
			}
		}
		doc, err := write.Answered(o, f.Field)
		return []source.Document{doc}, err
	}
}

// compared is an example whose completion is a JSON object of some of its fields, in their order: what answers to its
// prompt are rewarded by.
func compared(o object, fields []string) (object, error) {
	var text bytes.Buffer
	for i, key := range fields {
		value, ok := o[key]
		if !ok {
			return nil, fmt.Errorf("%w: the object has no %q, which reward_fields names", ErrExample, key)
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrExample, err)
		}
		text.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		text.Write(append(name, ':'))
		if err := json.Compact(&text, value); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrExample, err)
		}
	}
	text.WriteString("}")
	completion, err := json.Marshal(text.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExample, err)
	}
	if prompt := bytes.TrimLeft(o["prompt"], " \t\r\n"); len(prompt) > 0 && prompt[0] == '[' { // messages
		completion = slices.Concat([]byte(`[{"role":"assistant","content":`), completion, []byte("}]"))
	}
	return object{"prompt": o["prompt"], "completion": completion}, nil
}
