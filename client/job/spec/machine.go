package spec

import (
	"strconv"
	"strings"
)

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
