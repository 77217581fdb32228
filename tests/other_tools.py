"""Files of other tools about the demo table, as their public sources write and read them: µ-ANT and sdcMicro."""

from __future__ import annotations

MU_ANT = """<?xml version="1.0" encoding="utf-8"?>
<schema>
  <dataset>
    <attribute name="name" attribute_type="identifier" data_type="categoric"></attribute>
    <attribute name="age" attribute_type="quasi_identifier" data_type="numeric_discrete"></attribute>
    <attribute name="sex" attribute_type="quasi_identifier" data_type="categoric"></attribute>
    <attribute name="zip" attribute_type="quasi_identifier" data_type="semantic" ontology="./zip.owl"></attribute>
    <attribute name="education" attribute_type="non_confidential" data_type="categoric_ordinal"></attribute>
    <attribute name="marital_status" attribute_type="non_confidential" data_type="categoric"></attribute>
    <attribute name="income" attribute_type="identifier" data_type="numeric_discrete"></attribute>
    <attribute name="admission" attribute_type="quasi_identifier" data_type="date"></attribute>
    <attribute name="disease" attribute_type="non_confidential" data_type="categoric"></attribute>
    <attribute name="charge" attribute_type="confidential" data_type="numeric_continuous"></attribute>
  </dataset>
  <protection>
    <attribute_type type="identifier" protection="supression"></attribute_type>
    <attribute_type type="quasi_identifier" protection="k-anonymity" k="3"></attribute_type>
    <attribute_type type="confidential" protection="t-closeness" t="0.25"></attribute_type>
    <attribute_type type="non_confidential" protection="not"></attribute_type>
  </protection>
</schema>
"""
REPORT = """<html><body><h2>Deleted variables</h2>
<p>The following (direct identifying) variables have been deleted from the data set:</p>
<ul><li><em>name</em></li></ul>
<h2>Information on selected important (Key) Variables</h2>
<ul>
<li><strong>Categorical Key-Variable(s)</strong>: <em>sex</em> | <em>education</em> | <em>marital_status</em></li>
<li><strong>Continuous Key-Variable(s)</strong>: **</li>
<li><strong>Weight-Variable</strong>: <em>charge</em></li>
<li><strong>householdID</strong>: **</li>
<li><strong>sensitive Variable(s) for l-diversity</strong>: <em>disease</em></li>
</ul></body></html>
"""
SCRIPT = """library(sdcMicro)
keys <- c("sex", 'education')  # not keyVars = c("zip")
sdc <- createSdcObj(dat = patients, keyVars = keys,
                    numVars = c("age", "income"), sensibleVar = "disease", hhId = NULL, pramVars = "marital_status")
sdc <- kAnon(sdc, k = 3)
sdc <- microaggregation(sdc, method = "mdav", aggr = 4)
"""
