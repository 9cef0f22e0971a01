// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Family describes the metrics with one name.
type Family struct {
	Name, Type, Help string
	Labels           []string
}

// parts is a collector that consists of other collectors.
type parts interface{ Collectors() []prometheus.Collector }

// description matches the text of a prometheus.Desc, whose fields are not exported.
var description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

var constLabel = regexp.MustCompile(`(\w+)="`)

// Families returns the metric families of collectors, in order.
func Families(collectors ...prometheus.Collector) ([]Family, error) {
	var all []Family
	for _, c := range collectors {
		if p, ok := c.(parts); ok {
			inner, err := Families(p.Collectors()...)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		families, err := describe(c)
		if err != nil {
			return nil, err
		}
		all = append(all, families...)
	}
	return all, nil
}

func describe(c prometheus.Collector) ([]Family, error) {
	descs := make(chan *prometheus.Desc)
	go func() {
		c.Describe(descs)
		close(descs)
	}()
	var all []Family
	var failure error
	for desc := range descs {
		family, err := parse(desc)
		if err != nil {
			failure = err
		}
		family.Type = typeOf(c)
		all = append(all, family)
	}
	return all, failure
}

func parse(desc *prometheus.Desc) (Family, error) {
	found := description.FindStringSubmatch(desc.String())
	if found == nil {
		return Family{}, fmt.Errorf("cannot read the description of a metric: %s", desc)
	}
	name, nameErr := strconv.Unquote(found[1])
	help, helpErr := strconv.Unquote(found[2])
	if nameErr != nil || helpErr != nil {
		return Family{}, fmt.Errorf("cannot read the description of a metric: %s", desc)
	}
	family := Family{Name: name, Help: help}
	for _, label := range constLabel.FindAllStringSubmatch(found[3], -1) {
		family.Labels = append(family.Labels, label[1])
	}
	if found[4] != "" {
		family.Labels = append(family.Labels, strings.Split(found[4], ",")...)
	}
	return family, nil
}

// typeOf checks prometheus.Gauge before prometheus.Counter: a gauge also has all methods of a counter.
func typeOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	case *prometheus.GaugeVec, prometheus.Gauge:
		return "gauge"
	case prometheus.Counter:
		return "counter"
	case prometheus.GaugeFunc:
		return "gauge"
	}
	return "untyped"
}
