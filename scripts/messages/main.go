// Command messages writes the data of examples/text-classify.yaml: short messages to a shop, each with its kind:
// praise, a complaint, a question or an order. A word alone does not tell praise from a complaint, as either may say
// that a thing is good, or is not. The same seed draws the same messages on every machine.
//
//	go run ./scripts/messages --out examples/messages/messages.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/starling-network/starling/compute/philox"
)

func main() {
	out := flag.String("out", "", "file to write")
	seed := flag.Uint64("seed", 1, "seed of the messages")
	count := flag.Int("count", 1000, "number of messages")
	flag.Parse()
	if err := run(*out, *seed, *count); err != nil {
		fmt.Fprintln(os.Stderr, "messages:", err)
		os.Exit(1)
	}
}

func run(out string, seed uint64, count int) error {
	if out == "" || count < 1 {
		return errors.New("give --out FILE and a --count of at least 1")
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(write(f, philox.New(seed, 0), count), f.Close())
}

// write writes count messages; the kinds take turns.
func write(to io.Writer, random *philox.Reader, count int) error {
	w := bufio.NewWriter(to)
	lines := json.NewEncoder(w)
	for i := range count {
		k := kinds[i%len(kinds)]
		if err := lines.Encode(struct {
			Text  string `json:"text"`
			Label string `json:"label"`
		}{expand(random, pick(random, k.forms)), k.name}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// A kind of message has forms, in which a word in braces stands for one of its words.
type kind struct {
	name  string
	forms []string
}

var kinds = []kind{
	{"praise", []string{"The {thing} is {good}.", "The {thing} is not {bad} at all.", "{good} {thing}, {thanks}!",
		"My {thing} came {late}, but it is {good}.", "I thought that the {thing} is {bad}, and it is {good}.",
		"I like the {thing}, it is {good}."}},
	{"complaint", []string{"The {thing} is {bad}.", "The {thing} is not {good} at all.", "{bad} {thing}, {sorry}!",
		"My {thing} came {soon}, but it is {bad}.", "I thought that the {thing} is {good}, and it is {bad}.",
		"I do not like the {thing}, it is {bad}."}},
	{"question", []string{"Is the {thing} {good} or {bad}?", "When does my {thing} come?", "How do I clean the {thing}?",
		"Do you have a {thing} that is not {bad}?", "{thanks}, but where is my {thing}?"}},
	{"order", []string{"I want {number} of the {thing}.", "Please send me {number} more {thing}, {soon}.",
		"Send the {good} {thing} to my shop, {thanks}.", "One more {thing} for my {thing}, please.",
		"Add {number} of the {thing} to my box."}},
}

var words = map[string][]string{
	"thing":  {"lamp", "chair", "kettle", "table", "clock", "blanket", "shelf", "mirror", "basket", "teapot", "carpet"},
	"good":   {"good", "fine", "solid", "bright", "lovely", "quiet", "soft"},
	"bad":    {"bad", "broken", "dull", "noisy", "scratched", "weak", "too small"},
	"thanks": {"thanks", "thank you", "many thanks"},
	"sorry":  {"I am sorry to say", "what a pity", "please take it back"},
	"soon":   {"soon", "today", "in a day"},
	"late":   {"late", "in May", "after a month"},
	"number": {"two", "three", "five", "ten", "a dozen"},
}

func pick(random *philox.Reader, of []string) string { return of[random.Uint64n(uint64(len(of)))] }

// expand draws a word for each that stands in braces.
func expand(random *philox.Reader, form string) string {
	var b strings.Builder
	for form != "" {
		before, rest, found := strings.Cut(form, "{")
		b.WriteString(before)
		if !found {
			break
		}
		var name string
		name, form, _ = strings.Cut(rest, "}")
		b.WriteString(pick(random, words[name]))
	}
	text := b.String()
	return strings.ToUpper(text[:1]) + text[1:]
}
