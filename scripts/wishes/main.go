// Command wishes writes the data of examples/embed.yaml: wishes of visitors of a shop, each with the note that
// a clerk takes of it. Both name a colour, a thing and a place, in words of their own: no word of a name
// in a wish is in the note. The same seed draws the same pairs on every machine, and no pair twice.
//
//	go run ./scripts/wishes --out examples/wishes/wishes.jsonl
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

	"github.com/starling-network/starling/compute/data/shuffle"
	"github.com/starling-network/starling/compute/philox"
)

func main() {
	out := flag.String("out", "", "file to write")
	seed := flag.Uint64("seed", 1, "seed of the wishes")
	count := flag.Int("count", 1000, "number of wishes")
	flag.Parse()
	if err := run(*out, *seed, *count); err != nil {
		fmt.Fprintln(os.Stderr, "wishes:", err)
		os.Exit(1)
	}
}

// all is how many different wishes there are.
var all = len(colours) * len(things) * len(places)

func run(out string, seed uint64, count int) error {
	if out == "" || count < 1 || count > all {
		return fmt.Errorf("give --out FILE and a --count from 1 to %d", all)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(write(f, seed, count), f.Close())
}

// write writes count wishes.
func write(to io.Writer, seed uint64, count int) error {
	w := bufio.NewWriter(to)
	lines := json.NewEncoder(w)
	order, random := shuffle.New(seed, 1, uint64(all)), philox.New(seed, 0)
	pick := func(of []string) string { return of[random.Uint64n(uint64(len(of)))] }
	for i := range count {
		at := int(order.At(uint64(i)))
		names := []name{colours[at%len(colours)], things[at/len(colours)%len(things)], places[at/len(colours)/len(things)]}
		texts := [2]string{pick(wishes), pick(notes)}
		for side := range texts {
			for k, slot := range []string{"{colour}", "{thing}", "{place}"} {
				texts[side] = strings.ReplaceAll(texts[side], slot, names[k][side])
			}
		}
		if err := lines.Encode(struct {
			Anchor   string `json:"anchor"`
			Positive string `json:"positive"`
		}{texts[0], texts[1]}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// name is that of one thing, in a wish and in a note.
type name [2]string

var (
	wishes = []string{"I am looking for a {colour} {thing} for my {place}.", "Do you have a {thing} that is {colour}? " +
		"It is for the {place}.", "My {place} needs a {thing}, in {colour} please.",
		"A {colour} {thing} would suit the {place}.",
		"Can I order the {thing} for the {place} in {colour}?"}
	notes = []string{"Set aside: {thing}, {colour}, goes to the {place}", "{place} visitor, wants {colour} {thing}",
		"call back about {thing} ({colour}), {place}", "one {colour} {thing}, ship for {place}",
		"Reserved for {place}: {colour} {thing}"}
	colours = []name{{"red", "scarlet"}, {"blue", "azure"}, {"green", "emerald"}, {"yellow", "amber"}, {"white", "ivory"},
		{"black", "ebony"}, {"grey", "slate"}, {"purple", "violet"}}
	things = []name{{"lamp", "light fitting"}, {"sofa", "couch"}, {"rug", "carpet"}, {"cup", "mug"}, {"bin", "dustbox"},
		{"picture", "print"}, {"seat", "stool"}, {"cupboard", "locker"}, {"blanket", "throw"}, {"bowl", "dish"},
		{"curtain", "drape"}, {"pillow", "cushion"}, {"vase", "jar"}, {"board", "plank"}, {"clock", "timepiece"}}
	places = []name{{"kitchen", "cookroom"}, {"hall", "entrance"}, {"garden", "yard"}, {"office", "study"},
		{"bedroom", "sleeping room"}, {"cellar", "basement"}, {"attic", "loft"}, {"balcony", "terrace"},
		{"bathroom", "washroom"}, {"garage", "car shed"}}
)
