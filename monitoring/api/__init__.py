"""The REST API, version 1: everything that the pages show, and the changes that administrators may make.

Reads are typed values of `shapes`, encoded by msgspec; `document` makes the OpenAPI document of the same types. Every
refusal is a problem that names the parameter or field and the remedy. Who may do what, tokens, rates and the form of
problems are the project's, named in its settings of the REST framework.
"""
