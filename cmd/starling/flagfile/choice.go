package flagfile

import (
	"fmt"
	"slices"
	"strings"
)

// Choice is the value of a flag that is one of some words: pflag.Value.
type Choice struct {
	to    *string
	words []string
}

// OneOf returns a flag that sets to, which is the first of the words until then.
func OneOf(to *string, words ...string) *Choice {
	*to = words[0]
	return &Choice{to, words}
}

// Words are what the flag may be set to.
func (c *Choice) Words() []string { return c.words }

// String implements pflag.Value.
func (c *Choice) String() string { return *c.to }

// Type implements pflag.Value.
func (c *Choice) Type() string { return "string" }

// Set implements pflag.Value.
func (c *Choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		last := len(c.words) - 1
		return fmt.Errorf("use %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	*c.to = word
	return nil
}
