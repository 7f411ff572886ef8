package dataset

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data/source"
)

// marked is the text of a document with its learnt parts in brackets.
func marked(d source.Document) string {
	var b strings.Builder
	at := 0
	for _, r := range d.Learnt {
		b.WriteString(d.Text[at:r.From] + "[" + d.Text[r.From:r.To] + "]")
		at = r.To
	}
	return b.String() + d.Text[at:]
}

// Examples of the forms that people have become a prompt and the answer that is learnt.
func TestExamples(t *testing.T) {
	const hi = `{"role": "user", "content": "Hi"}`
	say := func(text string) string { return `{"role": "assistant", "content": "` + text + `"}` }
	for _, c := range []struct {
		task, line string
		want       []string
	}{
		{spec.TaskSFT, `{"messages": [` + hi + `, ` + say("Yes") + `]}`, []string{"User: Hi\n\nAssistant:[ Yes\n\n]"}},
		{spec.TaskSFT, `{"prompt": "2+2=", "completion": "4"}`, []string{"2+2=[4]"}},
		{spec.TaskSFT, `{"prompt": [` + hi + `], "completion": [` + say("Yes") + `]}`,
			[]string{"User: Hi\n\nAssistant:[ Yes\n\n]"}},
		{spec.TaskDPO, `{"prompt": "2+2=", "chosen": "4", "rejected": "5", "source": "x"}`, []string{"2+2=[4]", "2+2=[5]"}},
		{spec.TaskDPO, `{"chosen": [` + hi + `, ` + say("Yes") + `], "rejected": [` + hi + `, ` + say("No") + `]}`,
			[]string{"User: Hi\n\nAssistant:[ Yes\n\n]", "User: Hi\n\nAssistant:[ No\n\n]"}},
		{spec.TaskDPO, `{"prompt": [` + hi + `, ` + say("A") + `, ` + hi + `], "chosen": [` + say("B") + `], "rejected": [` +
			say("C") + `]}`, []string{"User: Hi\n\nAssistant: A\n\nUser: Hi\n\nAssistant:[ B\n\n]",
			"User: Hi\n\nAssistant: A\n\nUser: Hi\n\nAssistant:[ C\n\n]"}},
		{spec.TaskDPO, `{"input": {"messages": [` + hi + `]}, "preferred_output": [` + say("Yes") +
			`], "non_preferred_output": [` + say("No") + `]}`,
			[]string{"User: Hi\n\nAssistant:[ Yes\n\n]", "User: Hi\n\nAssistant:[ No\n\n]"}},
	} {
		var o object
		if err := json.Unmarshal([]byte(c.line), &o); err != nil {
			t.Fatal(c.line, err)
		}
		docs, err := File{task: c.task, Field: spec.FieldChats}.examples()(o)
		if err != nil || len(docs) != len(c.want) {
			t.Errorf("%s: %v, %v", c.line, docs, err)
			continue
		}
		for i, want := range c.want {
			if got := marked(docs[i]); got != want {
				t.Errorf("%s: %q, want %q", c.line, got, want)
			}
		}
	}
}

func TestWrongExamples(t *testing.T) {
	for _, c := range [][3]string{
		{spec.TaskSFT, `{"text": "a"}`, "neither \"messages\" nor"},
		{spec.TaskSFT, `{"prompt": "a", "completion": ""}`, "the answer is empty"},
		{spec.TaskSFT, `{"prompt": "a", "completion": []}`, "neither two texts nor"},
		{spec.TaskSFT, `{"messages": [{"role": "king", "content": "a"}]}`, "king"},
		{spec.TaskDPO, `{"prompt": "a", "chosen": "b"}`, "neither \"prompt\""},
		{spec.TaskDPO, `{"prompt": "a", "chosen": "b", "rejected": "b"}`, "are the same"},
		{spec.TaskDPO, `{"chosen": "b", "rejected": "c"}`, "without a \"prompt\""},
		{spec.TaskDPO, `{"prompt": 1, "chosen": "b", "rejected": "c"}`, "neither two texts nor"},
		{spec.TaskDPO, `{"input": 3, "preferred_output": [], "non_preferred_output": []}`, "input"},
	} {
		var o object
		if err := json.Unmarshal([]byte(c[1]), &o); err != nil {
			t.Fatal(c[1], err)
		}
		_, err := File{task: c[0], Field: spec.FieldChats}.examples()(o)
		if !errors.Is(err, ErrExample) || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %v, want %q", c[1], err, c[2])
		}
	}
}
