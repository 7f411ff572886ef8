package terminal

// FormNames are the words that -o takes.
func FormNames() (names []string) {
	for _, f := range Forms {
		names = append(names, string(f))
	}
	return names
}
