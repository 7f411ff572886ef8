package fields

import (
	"fmt"
	"strconv"
)

// Labels are the names of classes from id2label of a config.json, by their numbers from 0. The error is an *Error.
func Labels(named map[string]string) ([]string, error) {
	labels := make([]string, len(named))
	for i := range labels {
		label, ok := named[strconv.Itoa(i)]
		if !ok {
			return nil, &Error{Key: "id2label", Problem: fmt.Sprintf("class %d is missing", i),
				Fix: "number the classes from 0"}
		}
		labels[i] = label
	}
	return labels, nil
}

// Numbered is id2label of a config.json for the names of classes.
func Numbered(labels []string) map[string]string {
	named := make(map[string]string, len(labels))
	for i, label := range labels {
		named[strconv.Itoa(i)] = label
	}
	return named
}
