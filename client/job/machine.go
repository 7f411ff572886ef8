package job

import (
	"regexp"
	"strconv"
	"strings"
)

// acceleratorForm is what accelerators of a machine look like: a model, or any, and how many, up to 9999.
var acceleratorForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}:[1-9][0-9]{0,3}$`)

// Bits of a weight under an adapter; 0: it is float32.
func (m Model) Bits() int {
	return map[bool]int{true: 4}[m.LoadIn4bit] + map[bool]int{true: 8}[m.LoadIn8bit && !m.LoadIn4bit]
}

// Accelerator is which model of accelerator a machine has, "" for any, and how many; none if the job says nothing of
// it.
func (m Machine) Accelerator() (model string, n int) {
	model, count, _ := strings.Cut(m.Accelerators, ":")
	n, _ = strconv.Atoi(count) // checked with the job file
	if model == "any" {
		model = ""
	}
	return model, n
}
