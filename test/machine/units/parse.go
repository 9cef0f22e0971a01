// SPDX-License-Identifier: Apache-2.0

package units

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Unit is a unit file with its drop-ins.
type Unit struct {
	// Name is the name with its suffix, such as "kubelet.service".
	Name string
	// settings holds the values of each "Section.Key", in their original order.
	settings map[string][]string
}

// parse adds the settings of a unit file or drop-in. An empty value resets the earlier ones, as in systemd.
func (u *Unit) parse(content string) error {
	if u.settings == nil {
		u.settings = map[string][]string{}
	}
	section := ""
	for number, line := range logicalLines(content) {
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		default:
			key, value, found := strings.Cut(line, "=")
			if !found || section == "" {
				return fmt.Errorf("line %d: %q is neither a section nor a setting", number, line)
			}
			u.set(section+"."+strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
	return nil
}

func (u *Unit) set(key, value string) {
	if value == "" {
		delete(u.settings, key)
		return
	}
	u.settings[key] = append(u.settings[key], value)
}

// logicalLines joins lines that end in a backslash with the next, and drops comments between them. The key is the line
// number of the last joined line.
func logicalLines(content string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		joined := ""
		for i, line := range strings.Split(content, "\n") {
			trimmed := strings.TrimSpace(line)
			if joined != "" && trimmed != "" && (trimmed[0] == '#' || trimmed[0] == ';') {
				continue
			}
			if rest, more := strings.CutSuffix(trimmed, `\`); more {
				joined += rest + " "
				continue
			}
			if !yield(i+1, joined+trimmed) {
				return
			}
			joined = ""
		}
		if joined != "" {
			yield(0, strings.TrimSpace(joined))
		}
	}
}

// list returns all values of a setting that may be repeated.
func (u *Unit) list(key string) []string { return u.settings[key] }

// words returns all words of a setting that holds lists of words.
func (u *Unit) words(key string) []string {
	return strings.Fields(strings.Join(u.settings[key], " "))
}

// last returns the effective value of a setting with one value; empty if it is not set.
func (u *Unit) last(key string) string {
	values := u.settings[key]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

func (u *Unit) bool(key string) bool {
	switch strings.ToLower(u.last(key)) {
	case "1", "yes", "true", "on":
		return true
	}
	return false
}

// duration parses "90", "5s", "1min 30s", "infinity"; it returns zero for both infinity and zero.
func (u *Unit) duration(key string, unset time.Duration) (time.Duration, error) {
	value := u.last(key)
	if value == "" {
		return unset, nil
	}
	if value == "infinity" {
		return 0, nil
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	var total time.Duration
	for _, word := range strings.Fields(value) {
		d, err := time.ParseDuration(strings.Replace(word, "min", "m", 1))
		if err != nil {
			return 0, fmt.Errorf("%s=%s: not a time span", key, value)
		}
		total += d
	}
	return total, nil
}

// dependencies returns the units that this one is ordered after, wants, and requires.
func (u *Unit) dependencies() (after, wants, requires []string) {
	requires = append(u.words("Unit.Requires"), u.words("Unit.BindsTo")...)
	return u.words("Unit.After"), u.words("Unit.Wants"), requires
}
