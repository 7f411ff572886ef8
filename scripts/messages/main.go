// Command messages writes the data of examples/text-classify.yaml: short messages to a shop, each with its kind:
// praise, a complaint, a question or an order. A word alone does not tell praise from a complaint, as either may say
// that a thing is good, or is not. With --replies it writes the data of examples/reward.yaml: messages, with a reply
// that answers each, and one that answers another kind. The same seed draws the same lines on every machine.
//
//	go run ./scripts/messages --out examples/messages/messages.jsonl
//	go run ./scripts/messages --replies --count 2000 --seed 2 --out examples/messages/replies.jsonl
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
	replies := flag.Bool("replies", false, "write a good and a bad reply to each message in place of its kind")
	flag.Parse()
	write := labelled
	if *replies {
		write = answered
	}
	if err := run(*out, *seed, *count, write); err != nil {
		fmt.Fprintln(os.Stderr, "messages:", err)
		os.Exit(1)
	}
}

func run(out string, seed uint64, count int, write func(*philox.Reader, kind) any) error {
	if out == "" || count < 1 {
		return errors.New("give --out FILE and a --count of at least 1")
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(lines(f, philox.New(seed, 0), count, write), f.Close())
}

// lines writes count messages; the kinds take turns.
func lines(to io.Writer, random *philox.Reader, count int, write func(*philox.Reader, kind) any) error {
	w := bufio.NewWriter(to)
	each := json.NewEncoder(w)
	for i := range count {
		if err := each.Encode(write(random, kinds[i%len(kinds)])); err != nil {
			return err
		}
	}
	return w.Flush()
}

// labelled is a message with its kind.
func labelled(random *philox.Reader, k kind) any {
	return struct {
		Text  string `json:"text"`
		Label string `json:"label"`
	}{expand(random, pick(random, k.forms)), k.name}
}

// answered is a message with a reply to its kind, and one to another kind.
func answered(random *philox.Reader, k kind) any {
	other := pick(random, kinds)
	for other.name == k.name {
		other = pick(random, kinds)
	}
	return struct {
		Prompt   string `json:"prompt"`
		Chosen   string `json:"chosen"`
		Rejected string `json:"rejected"`
	}{expand(random, pick(random, k.forms)) + " ", expand(random, pick(random, k.replies)),
		expand(random, pick(random, other.replies))}
}

// A kind of message has forms, in which a word in braces stands for one of its words, and so have the replies to it.
type kind struct {
	name    string
	forms   []string
	replies []string
}

var kinds = []kind{
	{"praise", []string{"The {thing} is {good}.", "The {thing} is not {bad} at all.", "{good} {thing}, {thanks}!",
		"My {thing} came {late}, but it is {good}.", "I thought that the {thing} is {bad}, and it is {good}.",
		"I like the {thing}, it is {good}."},
		[]string{"We are glad that you like it.", "{thanks}, that makes us happy.", "So nice to hear that!"}},
	{"complaint", []string{"The {thing} is {bad}.", "The {thing} is not {good} at all.", "{bad} {thing}, {sorry}!",
		"My {thing} came {soon}, but it is {bad}.", "I thought that the {thing} is {good}, and it is {bad}.",
		"I do not like the {thing}, it is {bad}."},
		[]string{"We are sorry, send it back.", "Sorry, you get your money back.", "We send you a new one, sorry."}},
	{"question", []string{"Is the {thing} {good} or {bad}?", "When does my {thing} come?", "How do I clean the {thing}?",
		"Do you have a {thing} that is not {bad}?", "{thanks}, but where is my {thing}?"},
		[]string{"We will ask and tell you {soon}.", "Good question, we ask our shop.", "Let us look that up for you."}},
	{"order", []string{"I want {number} of the {thing}.", "Please send me {number} more {thing}, {soon}.",
		"Send the {good} {thing} to my shop, {thanks}.", "One more {thing} for my {thing}, please.",
		"Add {number} of the {thing} to my box."},
		[]string{"We send it {soon}.", "Your order is on its way.", "It is packed, and comes {soon}."}},
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

func pick[T any](random *philox.Reader, of []T) T { return of[random.Uint64n(uint64(len(of)))] }

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
