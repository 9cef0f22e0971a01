// SPDX-License-Identifier: Apache-2.0

package units

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// command is one command line of a unit.
type command struct {
	argv []string
	// ignoreFailure is set by the prefix "-".
	ignoreFailure bool
}

// splitWords splits a line into words as systemd does: quotes group, and a backslash escapes.
func splitWords(line string) ([]string, error) {
	var s splitter
	for _, r := range line {
		s.add(r)
	}
	if s.quote != 0 || s.escaped {
		return nil, fmt.Errorf("%q: a quote is not closed", line)
	}
	s.endWord()
	return s.words, nil
}

type splitter struct {
	words  []string
	word   strings.Builder
	inWord bool
	// quote is the open quote, or zero.
	quote   rune
	escaped bool
}

func (s *splitter) add(r rune) {
	switch {
	case s.escaped:
		s.word.WriteString(unescape(r))
		s.escaped = false
	case r == '\\':
		s.escaped, s.inWord = true, true
	case r == s.quote:
		s.quote = 0
	case s.quote == 0 && strings.ContainsRune(`"'`, r):
		s.quote, s.inWord = r, true
	case s.quote == 0 && strings.ContainsRune(" \t\n", r):
		s.endWord()
	default:
		s.inWord = true
		s.word.WriteRune(r)
	}
}

func (s *splitter) endWord() {
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

// unescape returns what a backslash followed by r stands for. An unknown sequence stays unchanged.
func unescape(r rune) string {
	known := map[rune]string{'n': "\n", 't': "\t", 's': " ", '\\': `\`, '"': `"`, '\'': "'"}
	if s, ok := known[r]; ok {
		return s
	}
	return `\` + string(r)
}

// specifiers expands %n and the other specifiers; unknown ones stay unchanged.
func specifiers(unit, hostname, text string) string {
	name, _ := cutSuffix(unit)
	prefix, instance, _ := strings.Cut(name, "@")
	return strings.NewReplacer("%%", "%", "%n", unit, "%N", name, "%p", prefix, "%i", instance, "%H", hostname, "%t", "/run").Replace(text)
}

// cutSuffix splits "kubelet.service" into "kubelet" and "service".
func cutSuffix(unit string) (name, suffix string) {
	i := strings.LastIndexByte(unit, '.')
	if i < 0 {
		return unit, ""
	}
	return unit[:i], unit[i+1:]
}

var variable = regexp.MustCompile(`\$\$|\$\{(\w+)\}|\$(\w+)`)

// parseCommand parses a line such as `-/usr/bin/sh -c "echo $HOME"`.
func parseCommand(line string, env map[string]string) (command, error) {
	c := command{}
	trimmed := strings.TrimLeft(line, "-@:+!|")
	c.ignoreFailure = strings.Contains(line[:len(line)-len(trimmed)], "-")
	words, err := splitWords(trimmed)
	if err != nil {
		return c, err
	}
	for _, word := range words {
		// A variable that is a separate word may expand to several words, or none.
		if match := variable.FindStringSubmatch(word); match != nil && match[0] == word && match[2] != "" {
			c.argv = append(c.argv, strings.Fields(env[match[2]])...)
			continue
		}
		c.argv = append(c.argv, expand(word, env))
	}
	if len(c.argv) == 0 {
		return c, fmt.Errorf("%q: no command", line)
	}
	return c, nil
}

func expand(word string, env map[string]string) string {
	return variable.ReplaceAllStringFunc(word, func(match string) string {
		if match == "$$" {
			return "$"
		}
		return env[strings.Trim(match, "${}")]
	})
}

// environment returns the unit's environment, added to base.
func environment(u *Unit, hostname string, base []string) (map[string]string, error) {
	env := map[string]string{}
	add := func(pairs []string) {
		for _, pair := range pairs {
			if key, value, found := strings.Cut(pair, "="); found {
				env[key] = value
			}
		}
	}
	add(base)
	for _, line := range u.list("Service.Environment") {
		pairs, err := splitWords(specifiers(u.Name, hostname, line))
		if err != nil {
			return nil, fmt.Errorf("Environment=%w", err)
		}
		add(pairs)
	}
	for _, file := range u.list("Service.EnvironmentFile") {
		pairs, err := environmentFile(specifiers(u.Name, hostname, file))
		if err != nil {
			return nil, err
		}
		add(pairs)
	}
	return env, nil
}

// environmentFile reads KEY=VALUE lines. A file with the prefix "-" may be missing.
func environmentFile(path string) ([]string, error) {
	path, optional := strings.CutPrefix(path, "-")
	data, err := os.ReadFile(path)
	if optional && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("EnvironmentFile: %w", err)
	}
	var pairs []string
	for _, line := range logicalLines(string(data)) {
		key, value, found := strings.Cut(line, "=")
		if !found || line[0] == '#' || line[0] == ';' {
			continue
		}
		words, err := splitWords(value)
		if err != nil {
			return nil, fmt.Errorf("EnvironmentFile %s: %w", path, err)
		}
		pairs = append(pairs, strings.TrimSpace(key)+"="+strings.Join(words, " "))
	}
	return pairs, nil
}
